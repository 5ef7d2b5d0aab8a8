"""Check that a slab body holds a body, by an upper bound on the support function of the latter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._typing import FloatArray
from geomdp.bodies import Body, HasSupport, LinearImage, SlabBody


@dataclass(frozen=True)
class SlabCertificate:
    """Result of checking whether the slabs {x : |<z_j, x>| <= w_j} hold a body K.

    Parameters
    ----------
    heights : (F,) array
        The larger of the upper bounds on h_K(z_j) and on h_K(-z_j).
    widths : (F,) array
        Half-widths w_j.
    off_span : float
        How far K may leave the span of the slab body: the largest upper bound on h_K over the
        vectors, with either sign, of an orthonormal basis of the orthogonal complement; 0 if the
        slab body is full-dimensional.
    scale : float
        Largest distance of the slab body's bounding box from 0, to which `off_span` is compared.
    """

    heights: FloatArray
    widths: FloatArray
    off_span: float
    scale: float

    def __repr__(self) -> str:
        state = "valid" if self.valid else "not valid"
        return f"SlabCertificate({state}; {len(self.widths)} slabs, margin {self.margin:.2g})"

    @property
    def margin(self) -> float:
        """Smallest w_j / height_j - 1 over the slabs: negative if a slab may not hold K.

        Infinite if the bound is 0 in all directions.
        """
        with np.errstate(divide="ignore"):
            return float((self.widths / self.heights).min() - 1)

    @property
    def valid(self) -> bool:
        """Whether every slab holds K, and K lies in the span up to rounding (SAM-5)."""
        inside = bool((self.heights <= self.widths).all())
        return inside and self.off_span <= RANK_TOLERANCE * self.scale


def certify_slabs(body: Body, bound: HasSupport) -> SlabCertificate:
    """Compare every slab of an outer body with an upper bound on the support function of K.

    K lies in the slab body iff h_K(z_j) <= w_j and h_K(-z_j) <= w_j for all j. For an independent
    check, use another oracle than the one the slabs were found with: listed vertices, or a
    relaxation with dual bounds.

    Parameters
    ----------
    body : SlabBody, or LinearImage of one
        As `SlabRefinement.body`; the map must be one-to-one.
    bound : object with ``support``
        Upper bounds on h_K, for directions (b, m) in the same space as `body`.

    Returns
    -------
    SlabCertificate
        Its `valid` is the answer.

    Raises
    ------
    ValueError
        If `body` is no slab body, or `bound` has another dimension.

    Notes
    -----
    Cost: 2 F + 2 (m - r) support functions, and r linear programs for the scale if r < m.

    References
    ----------
    Formula sheet X-OUT, SAM-5.
    """
    slabs = body.body if isinstance(body, LinearImage) else body
    if not isinstance(slabs, SlabBody):
        raise ValueError(f"body must be a SlabBody or a LinearImage of one, got {body!r}")
    if bound.dimension != body.dimension:
        raise ValueError(f"bound must have dimension {body.dimension}, got {bound.dimension}")
    # A slab |<z, y>| <= w with y = inverse @ x has the normal inverse^T z in the space of x.
    directions = slabs.directions
    if isinstance(body, LinearImage):
        directions = directions @ body.inverse
    heights = np.maximum(bound.support(directions), bound.support(-directions))
    basis = body.affine_hull().basis
    off_span, scale = 0.0, 1.0
    if basis.shape[1] < body.dimension:
        orthogonal = np.linalg.svd(basis)[0][:, basis.shape[1] :].T
        both = np.vstack([orthogonal, -orthogonal])
        off_span, scale = float(bound.support(both).max()), body.radius()
    return SlabCertificate(heights, slabs.widths, off_span, scale)
