"""The engine runs sweeps of configurations, resumes them, and checks the claims of figures.

`cells` defines the units of computation, and `store` keeps their results. `run` computes the
missing results in this process, in `processes` of this machine, or on a Dask `cluster`. `script`
says what the module of a figure must define, and `reproduce` runs this module and writes its files.
Scripts use `cells`, `claims`, `checks`, `statistics` and `drawing`.
"""
