"""How well are sparse queries answered?"""
