"""Mechanisms for few queries: noise on whole numbers, and staircase noise on one query."""
