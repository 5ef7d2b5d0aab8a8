"""Tests of geomdp.tabulation."""
