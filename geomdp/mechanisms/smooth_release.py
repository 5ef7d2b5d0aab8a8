"""The released summary, which answers smooth queries without the records."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from geomdp._numerics.files import parsed, read_arrays, write_together
from geomdp._typing import FloatArray
from geomdp._validation import finite_array, positive, require_type, whole
from geomdp.bodies.base import Body, checked_body
from geomdp.bodies.cvx_body import cosine_moment_body, grid_moment_body
from geomdp.data import Schema
from geomdp.geometry.projection import Projector
from geomdp.privacy import Adjacency, Guarantee
from geomdp.workloads.smooth.evaluation import Coefficients, Filter, Truncation, approximate
from geomdp.workloads.smooth.queries import Function

# The nearest moments of a distribution on the cube, in place of noisy Chebyshev moments.


@dataclass(frozen=True, eq=False)
class MomentProjection:
    """Least squares over the moments of distributions on [-1, 1]^d, weighted by the noise.

    The moment m = (m_1, ..., m_d) is the mean of T_{m_1}(x_1) ... T_{m_d}(x_d), where T_i is the
    Chebyshev polynomial of degree i; the moment m = 0 is 1. For noisy moments Y_m with standard
    deviations s_m of the noise, the result is

        argmin sum_{m != 0} ((M_m - Y_m) / s_m)^2   over moment vectors M.

    It reads a released summary only, so it costs no privacy (post-processing). If the true moments
    are those of a distribution, the projection of `semidefinite` does not increase the error in the
    weighted norm, up to the accuracy of the solver, and that of `on_grid` increases it at most by
    the distance of the true moments from the moments of distributions on the grid. Both can
    increase the errors of single queries.

    Parameters
    ----------
    deviations : (t,) * d array
        The s_m > 0 for t degrees in each of d variables, up to a common factor. The first entry,
        for the constant moment, is not used.
    body : Body
        The set of moment vectors in the coordinates M_m / s_m; made by `semidefinite` or `on_grid`.

    Examples
    --------
    No distribution on [-1, 1] has a first moment of 1.1:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> noisy = np.array([1.0, 1.1, -0.5])
    >>> projection = gd.mechanisms.MomentProjection.on_grid([0.0, 0.2, 0.2], per_axis=41)
    >>> projection(noisy).round(2)
    array([ 1.  ,  0.59, -0.3 ])
    """

    deviations: FloatArray
    body: Body

    def __post_init__(self) -> None:
        checked_body(self.body)

    @classmethod
    def semidefinite(cls, deviations: npt.ArrayLike) -> Self:
        """Projection on the moments of all distributions on [-1, 1], for `deviations` (t,)."""
        scales = _relative(deviations)
        if scales.ndim != 1:
            raise ValueError(f"deviations must have shape (t,), got {scales.shape}")
        return cls(scales, cosine_moment_body(scales[1:]))

    @classmethod
    def on_grid(cls, deviations: npt.ArrayLike, per_axis: int) -> Self:
        """Projection on the moments of distributions on a grid of `per_axis`^d points.

        `per_axis` is at least 2. From several times t on, the moments of every distribution are
        close to those of one on the grid.
        """
        scales = _relative(deviations)
        return cls(scales, grid_moment_body(scales, per_axis))

    def __repr__(self) -> str:
        return f"MomentProjection({self.deviations.shape} moments on {self.body!r})"

    @cached_property
    def _projector(self) -> Projector:
        return Projector(self.body)

    def __call__(self, noisy: npt.ArrayLike) -> FloatArray:
        """The moment vector of the body nearest to `noisy`, in an array of the same shape."""
        noisy = finite_array(noisy, "noisy", self.deviations.ndim)
        if noisy.shape != self.deviations.shape:
            raise ValueError(f"noisy must have shape {self.deviations.shape}, got {noisy.shape}")
        scales = self.deviations.ravel()[1:]
        target = noisy.ravel()[1:] / scales
        if self.body.implements(Body.project):
            nearest = self.body.project(target[None])[0]
        else:
            nearest = self._projector.nearest(target).point
        return np.concatenate([[1.0], nearest * scales]).reshape(noisy.shape)


def _relative(deviations: npt.ArrayLike) -> FloatArray:
    """`deviations` divided by the largest s_m with m != 0: a common factor has no effect."""
    array = finite_array(deviations, "deviations", np.ndim(deviations))
    varying = array.ravel()[1:]
    if not (varying.size and (varying > 0).all()):
        raise ValueError("deviations must be above 0 for every moment but the constant")
    return np.asarray(array / varying.max())


# The release.

#: Name of the file layout, which each file states. `load` refuses files of any other layout.
FORMAT = "geomdp smooth summary 1"


class SmoothAnswer(NamedTuple):
    """An answer to a smooth query, with the sizes of its errors.

    Under replace-one it estimates the mean over the n records. Under add/remove, where the number N
    of records is private, each of the n - N missing records counts as one on which the query is
    `missing_record`: it estimates (sum over the records + (n - N) `missing_record`) / n, and errors
    are against this number. If N > n, multiply `approximation_error` and `error_bound` by N / n.
    """

    value: float
    noise_std: float
    approximation_error: float
    error_bound: float
    missing_record: float


@dataclass(frozen=True, eq=False)
class SmoothRelease:
    """Noisy Chebyshev moments, with all that is needed to answer smooth queries from them.

    Parameters
    ----------
    moments : (t,) * d array
        Noisy sums over the records, divided by n, for t degrees in each of d variables. The first
        entry, the constant moment, is set to 1 and not measured (see `SmoothAnswer`).
    noise_std : (t,) * d array
        Standard deviation of the noise on each moment; 0 for the constant moment.
    n : int
        Number of records; under add/remove, the declared number by which the sums are divided.
    smoothness : int
        Number K of bounded derivatives for which the number of moments was chosen.
    numerical_error : float
        Bound on the numerical error of every moment before noise.
    guarantee : Guarantee
        The privacy guarantee of this release.
    schema : Schema, optional
        The real columns that are the variables. Their public bounds are mapped to -1 and 1.
    post_processed : bool
        Whether a `MomentProjection` has changed the moments, but not `noise_std`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.SmoothSummary(1, n=10_000, smoothness=2, privacy=gd.PureDP(1.0))
    >>> release = mechanism.release(np.zeros((10_000, 1)), rng=0)  # the seed voids privacy
    >>> release.save("summary.npz")
    >>> loaded = gd.mechanisms.SmoothRelease.load("summary.npz")
    >>> loaded.degree, round(loaded.answer(lambda points: np.cos(points[:, 0])).value, 2)
    (88, 1.0)
    """

    moments: FloatArray
    noise_std: FloatArray
    n: int
    smoothness: int
    numerical_error: float
    guarantee: Guarantee
    schema: Schema | None = None
    post_processed: bool = False

    def __repr__(self) -> str:
        projected = ", projected" if self.post_processed else ""
        return (
            f"SmoothRelease({self.degree}^{self.d} moments{projected}, n={self.n}; "
            f"{self.guarantee})"
        )

    @property
    def d(self) -> int:
        """Number of variables."""
        return self.moments.ndim

    @property
    def degree(self) -> int:
        """Number t of degrees 0..t-1 in each variable."""
        return len(self.moments)

    def answer(self, query: Function, filter: Filter | None = None) -> SmoothAnswer:
        """Estimate the mean of a function over the records by post-processing (see `SmoothAnswer`).

        ``ValueError`` if `query` does not return a finite real number for each point, if a value
        depends on the other points of the array, or if a `SmoothQuery` does not have d variables.

        Parameters
        ----------
        query : callable
            A `SmoothQuery`, or a function that maps points (b, d) of [-1, 1]^d to values (b,).
        filter : Filter, optional
            Rule for the coefficients of the polynomial, from the Chebyshev coefficients of the
            function; by default `Truncation()`.
        """
        chosen = Truncation() if filter is None else filter
        return self.combine(approximate(query, self.degree, self.d, chosen))

    def combine(self, coefficients: Coefficients) -> SmoothAnswer:
        """The answer for `coefficients` of the polynomial, in the shape of the moments, in O(t^d).

        ``ValueError`` for another shape.
        """
        return SmoothAnswer(
            coefficients.answer(self.moments),
            coefficients.noise_std(self.noise_std),
            coefficients.approximation_error,
            coefficients.error_bound,
            float(coefficients.values.flat[0]),
        )

    def projected(self, projection: MomentProjection) -> SmoothRelease:
        """This release with its moments replaced by the nearest moments of a distribution.

        `guarantee` stays the same (post-processing), and so does `noise_std`, because the
        deviations after the projection depend on the records. ``ValueError`` if the projection is
        for moments of another shape, and under add/remove, where moments are multiples of those of
        distributions.

        Parameters
        ----------
        projection : MomentProjection
            `MomentProjection.semidefinite(release.noise_std)` for one variable, or
            `MomentProjection.on_grid(release.noise_std, per_axis)`.
        """
        if self.guarantee.adjacency is Adjacency.ADD_REMOVE:
            raise ValueError(
                "moments must be means for a projection, got a release for add/remove, where the "
                "number of records is private"
            )
        return replace(self, moments=projection(self.moments), post_processed=True)

    def to_bytes(self) -> bytes:
        """The release as the content of an .npz file."""
        record = {
            "format": FORMAT,
            "n": self.n,
            "d": self.d,
            "degree": self.degree,
            "smoothness": self.smoothness,
            "numerical_error": self.numerical_error,
            "schema": None if self.schema is None else json.loads(self.schema.to_json()),
            "guarantee": self.guarantee.to_dict(),
            "post_processed": self.post_processed,
        }
        file = io.BytesIO()
        np.savez(file, record=json.dumps(record), moments=self.moments, noise_std=self.noise_std)
        return file.getvalue()

    def save(self, path: str | Path) -> None:
        """Write the release to a file, completely or not at all. `path` should end in .npz."""
        write_together({Path(path): self.to_bytes()})

    @classmethod
    def load(cls, path: str | Path) -> SmoothRelease:
        """Read a summary that `save` wrote; ``FileNotFoundError`` if there is no such file.

        ``ValueError`` if the file has another layout, or contains contradictory entries.
        """
        try:
            arrays = read_arrays(Path(path), ("record", "moments", "noise_std"))
            record = parsed(str(arrays.pop("record")))
            if record["format"] != FORMAT:
                raise ValueError(f"format must be {FORMAT!r}, got {record['format']!r}")
            d, degree = whole(record["d"], "d"), whole(record["degree"], "degree", minimum=2)
            shape = (degree,) * d
            moments, deviations = (finite_array(arrays[k], k, d) for k in ("moments", "noise_std"))
            for name, array in (("moments", moments), ("noise_std", deviations)):
                if array.shape != shape:
                    raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
            if moments.flat[0] != 1 or deviations.flat[0] != 0 or (deviations < 0).any():
                raise ValueError(
                    "the constant moment must be 1 with noise_std 0; no noise_std may be negative"
                )
            description, post_processed = record["schema"], record["post_processed"]
            schema = None if description is None else Schema.from_json(json.dumps(description))
            if schema is not None:
                check_schema(schema, d)
            if not isinstance(post_processed, bool):
                raise ValueError(f"post_processed must be true or false, got {post_processed!r}")
            return cls(
                moments=moments,
                noise_std=deviations,
                n=whole(record["n"], "n"),
                smoothness=whole(record["smoothness"], "smoothness"),
                numerical_error=positive(record["numerical_error"], "numerical_error"),
                guarantee=Guarantee.from_dict(record["guarantee"]),
                schema=schema,
                post_processed=post_processed,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a smooth summary: {error}") from error


def check_schema(schema: Schema, d: int) -> None:
    require_type(schema, Schema, "schema")
    if schema.discrete_columns or len(schema.columns) != d:
        raise ValueError(
            f"schema must have {d} real columns and no others, got {len(schema.real_columns)} real "
            f"columns among {len(schema.columns)}"
        )
