"""The engine: sweeps of configurations that resume, and figures that check themselves.

`cells` says what is computed, `store` keeps it, `run` computes what is missing, `script` is what a
figure script offers, `reproduce` takes one from cells to checked files. Scripts use `cells`,
`claims`, `checks`, `statistics` and `drawing`.
"""
