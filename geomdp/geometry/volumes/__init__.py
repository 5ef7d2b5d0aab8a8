"""Volume, covariance and second moments of bodies."""
