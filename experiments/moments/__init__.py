"""How large is the error of second moments and covariances, under pure DP?"""
