"""The duality gaps at which searches for nearest points stop."""

import pytest

from geomdp.geometry.projection import Projector


def recorded_gaps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A list that gets the allowed duality gap of every search from now on."""
    gaps: list[float] = []
    search = Projector._searched

    def recorded(self, columns, known, target, tol, warm_start):
        gaps.append(tol * columns.scale**2)
        return search(self, columns, known, target, tol, warm_start)

    monkeypatch.setattr(Projector, "_searched", recorded)
    return gaps
