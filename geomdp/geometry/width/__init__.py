"""Gaussian mean width: closed forms, and estimates with control variates."""
