"""The engine: sweeps of configurations that resume, and figures that check themselves.

`cells` says what is computed, `store` keeps it, `run` computes what is missing, in this process or
on an executor: `processes` of this machine or a Dask `cluster`. `script` says what the module of a
figure must define, and `reproduce` runs such a module from its cells to checked files. Scripts use
`cells`, `claims`, `checks`, `statistics` and `drawing`.
"""
