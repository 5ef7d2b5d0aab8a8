"""Exact counts, in one scan of the records, of the tables that determine a workload's answers."""
