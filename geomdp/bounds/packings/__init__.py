"""Packings: data sets close together with answers far apart, and their lower bounds."""
