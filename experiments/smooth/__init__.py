"""How well are smooth queries answered?"""
