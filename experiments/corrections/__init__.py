"""Which published statements fail, and what holds in their place?"""
