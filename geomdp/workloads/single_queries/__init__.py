"""Single queries, and workloads of sparse queries."""
