"""How fast and how accurate is geomdp beside other packages?"""
