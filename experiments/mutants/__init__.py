"""Which mistakes in the code do the claims of figures and the tests notice?"""
