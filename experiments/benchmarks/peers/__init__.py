"""Other people's solvers set to the tasks of the geometry benchmark."""
