"""Exact counts of the tables that a workload is computed from, in one scan of the records."""
