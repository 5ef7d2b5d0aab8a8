"""Random projection of records for sparse queries."""
