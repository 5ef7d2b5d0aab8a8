"""An independent check that slabs hold a body, from an upper bound on its support function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._linalg import RANK_TOLERANCE
from geomdp._typing import FloatArray
from geomdp.bodies import Body, HasSupport, LinearImage, SlabBody


@dataclass(frozen=True)
class SlabCertificate:
    """What was found about the slabs {x : |<z_j, x>| <= w_j} and a body K.

    Parameters
    ----------
    heights : (F,) array
        Upper bounds on h_K(z_j) and h_K(-z_j), the larger of the two.
    widths : (F,) array
        Half-widths w_j.
    off_span : float
        Largest upper bound on h_K over a basis orthogonal to the span of the slab body and its
        negatives; 0 for a full-dimensional one.
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
        """Smallest w_j / height_j - 1: by which share all slabs could be narrowed; negative if not.

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

    K lies in the slab body iff h_K(z_j) <= w_j and h_K(-z_j) <= w_j for all j. Use an oracle other
    than the one the slabs were found with: listed vertices, or a relaxation with dual bounds.

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
    # <z, y> for y = inverse @ x.
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
