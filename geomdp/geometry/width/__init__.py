"""Gaussian mean width: closed forms, estimates with control variates, bounds."""
