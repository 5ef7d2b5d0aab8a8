"""Upper and lower bounds on the error of private mechanisms."""

__all__: list[str] = []
