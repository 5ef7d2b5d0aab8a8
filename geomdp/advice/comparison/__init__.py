"""Build the candidates, note the reason for each candidate left out, and rank the others."""
