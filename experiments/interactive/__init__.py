"""What do queries that come one at a time cost?"""
