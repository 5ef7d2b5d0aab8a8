"""Symmetries of a workload: orthogonal maps of the answer space that permute all answer vectors.

They map the sensitivity polytope, its difference body and its symmetric hull onto themselves. So if
a slab contains one of these bodies, the image of the slab contains it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.base import Workload
from geomdp.workloads.boolean import Marginals, Parities
from geomdp.workloads.tables import MarginalTables

#: A function that maps directions (b, m) to images (b, m) under one random symmetry.
RandomSymmetry = Callable[[FloatArray, np.random.Generator], FloatArray]


@singledispatch
def random_symmetry(workload: Workload) -> RandomSymmetry | None:
    """A function that applies random symmetries of `workload`, or None if no symmetry is known.

    Each call of the returned function draws one symmetry uniformly from a known group. The function
    takes directions (b, m) and a generator, and returns the images (b, m) of all directions.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Parities(4, 1)
    >>> symmetry = gd.workloads.random_symmetry(workload)
    >>> direction = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> image = symmetry(direction, np.random.default_rng(0))
    >>> image
    array([[-4.,  3.,  2.,  1.]])

    The sensitivity polytope has the same breadth in both directions:

    >>> workload.breadth(np.vstack([direction, image]))
    array([20., 20.])
    """
    del workload
    return None


@random_symmetry.register
def _(workload: MarginalTables) -> RandomSymmetry | None:
    """Permute the attributes; for parities, also flip some, which changes the signs of queries."""
    place_of = dict(zip(workload.tables, workload.slices, strict=True))

    def image(directions: FloatArray, rng: np.random.Generator) -> FloatArray:
        target = _permuted_within(workload.levels, rng)
        relabelled = [rng.permutation(levels) for levels in workload.levels]
        images = np.empty_like(directions)
        for table, place in place_of.items():
            cells = directions[:, place].reshape(-1, *workload.shape(table))
            for axis, column in enumerate(table, start=1):
                cells = np.take(cells, relabelled[column], axis=axis)
            order = np.argsort(target[list(table)])
            cells = cells.transpose(0, *(1 + order))
            moved = tuple(int(column) for column in np.sort(target[list(table)]))
            images[:, place_of[moved]] = cells.reshape(len(directions), -1)
        return images

    return image


@random_symmetry.register(Marginals)
@random_symmetry.register(Parities)
def _(workload: Marginals | Parities) -> RandomSymmetry | None:
    """Permute the attributes. For parities, also flip some attributes.

    The parity of a set S of attributes changes its sign once for each flipped attribute in S.
    """

    def image(directions: FloatArray, rng: np.random.Generator) -> FloatArray:
        images = np.empty_like(directions)
        if isinstance(workload, Parities):
            flips = rng.choice([-1.0, 1.0], workload.d)
            directions = directions * flips[workload.subsets].prod(axis=1)
        images[:, _subset_images(workload.subsets, rng.permutation(workload.d))] = directions
        return images

    return image


def _permuted_within(levels: tuple[int, ...], rng: np.random.Generator) -> IntArray:
    counts = np.array(levels)
    target = np.empty(len(levels), dtype=np.int64)
    for count in np.unique(counts):
        (members,) = np.nonzero(counts == count)
        target[members] = rng.permutation(members)
    return target


def _subset_images(subsets: IntArray, target: IntArray) -> IntArray:
    """Number of the subset to which `target` maps each row of `subsets` (m, k)."""
    number = {tuple(row): i for i, row in enumerate(subsets.tolist())}
    moved = np.sort(target[subsets], axis=1).tolist()
    return np.array([number[tuple(row)] for row in moved], dtype=np.int64)
