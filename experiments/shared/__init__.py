"""Workloads, records and bodies that scripts of several folders use."""
