"""Outer slab bodies on disk: slabs are public, and finding them takes longer than using them."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from geomdp._linalg import RANK_TOLERANCE
from geomdp._typing import FloatArray
from geomdp._validation import finite_array
from geomdp.bodies import SlabBody
from geomdp.geometry.outer_slabs.refinement import RefinementRound, SlabRefinement, embedded
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.samplers import ChainSampler

#: Written into every file; a file with another number is refused.
FORMAT = 1
#: Arrays of a file and their numbers of axes.
ARRAYS = {"directions": 2, "widths": 1, "basis": 2, "moment": 1, "history": 2}


def save_slabs(refinement: SlabRefinement, path: str | os.PathLike[str]) -> None:
    """Write slabs, span, E ||U||^2 and history to an ``.npz`` file, without loss.

    Parameters
    ----------
    refinement : SlabRefinement
        From `refine_slabs`. It depends on the workload alone and may be published.
    path : path
        File to write, replaced if it exists; the name is taken as it is.
    """
    moment = refinement.second_moment
    rounds = [(float(e.slabs), e.second_moment, e.cut) for e in refinement.history]
    with Path(path).open("wb") as file:
        np.savez_compressed(
            file,
            format=np.array(FORMAT),
            directions=refinement.slabs.directions,
            widths=refinement.slabs.widths,
            basis=refinement.basis,
            moment=np.array([moment.value, moment.stderr, *moment.interval, moment.samples]),
            history=np.array(rounds).reshape(-1, 3),
        )


def load_slabs(path: str | os.PathLike[str]) -> SlabRefinement:
    """The refinement that `save_slabs` wrote.

    Its sampler is prepared anew, with the public seed. The file is not trusted to hold a valid
    outer body of anything: `certify_slabs` checks that, and so does `KNorm` of the ``body`` it is
    given.

    Parameters
    ----------
    path : path
        File to read.

    Returns
    -------
    SlabRefinement

    Raises
    ------
    ValueError
        If the file is no slab file of this format, or its arrays do not fit together.
    OSError
        If it cannot be read.
    """
    arrays = _arrays(path)
    slabs, basis = SlabBody(arrays["directions"], arrays["widths"]), arrays["basis"]
    gram = basis.T @ basis
    if len(gram) != slabs.dimension or np.abs(gram - np.eye(len(gram))).max() > RANK_TOLERANCE:
        raise ValueError(
            f"basis in {os.fspath(path)!r} must have {slabs.dimension} orthonormal columns, got "
            f"shape {basis.shape}"
        )
    if arrays["moment"].shape != (5,) or arrays["history"].shape[1] != 3:
        raise ValueError(f"{os.fspath(path)!r} must hold a moment of 5 numbers and rounds of 3")
    value, stderr, low, high, samples = map(float, arrays["moment"])
    history = tuple(
        RefinementRound(int(count), float(moment), float(cut))
        for count, moment, cut in arrays["history"]
    )
    sampler = ChainSampler(embedded(slabs, basis))
    estimate = Estimate(value, stderr, (low, high), int(samples))
    return SlabRefinement(slabs, basis, sampler, estimate, history)


def _arrays(path: str | os.PathLike[str]) -> dict[str, FloatArray]:
    name = os.fspath(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            found = int(file["format"])
            arrays = {key: finite_array(file[key], key, ndim) for key, ndim in ARRAYS.items()}
    except (BadZipFile, EOFError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{name!r} must be a file written by save_slabs: {error}") from error
    if found != FORMAT:
        raise ValueError(f"{name!r} must have format {FORMAT}, got {found}")
    return arrays
