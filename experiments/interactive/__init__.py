"""What do queries cost that come one at a time?"""
