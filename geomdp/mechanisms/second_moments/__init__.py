"""Second moments and covariance matrices of records in a ball."""
