"""What scripts of several folders use: workloads, records and bodies."""
