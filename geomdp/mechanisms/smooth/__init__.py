"""Release of noisy Chebyshev moments that answer all smooth queries."""
