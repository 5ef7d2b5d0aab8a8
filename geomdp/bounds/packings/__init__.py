"""Packings of data sets with far answers, and the lower bounds that follow from them."""
