"""What several scripts need: workloads, releases and error tables."""
