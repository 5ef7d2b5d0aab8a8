"""The privacy record of a mechanism or release: definition of privacy, sampler and arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from geomdp._validation import probability, require_type, whole
from geomdp.privacy.definitions import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Privacy,
    check_privacy,
    checked_adjacency,
    group_privacy,
    printed,
    privacy_from_parameters,
    rounded_up,
)

FLOAT64_CAVEAT = "stated for real arithmetic; sampled in float64"

#: The text `arithmetic` of a privacy record, for noise on single numbers (X-GRID). Noisy numbers
#: are compared with each other, or rounded, without error.
DECIDED_ARITHMETIC = (
    "noise compared and rounded exactly, true answers taken as given; random bits from the "
    "operating system"
)


def rounded_arithmetic(grid: int, slack: float = 0.0) -> str:
    """The text for noise, enlarged by 1 + `slack`, on multiples of 2^-grid (X-GRID)."""
    scaled = f", made larger by a proved slack of {slack:g}" if slack else ""
    return (
        f"noise correctly rounded to multiples of 2^-{grid}{scaled}; random bits from the "
        "operating system"
    )


@dataclass(frozen=True)
class Exact:
    """The noise has exactly the stated distribution, up to the caveat on the arithmetic (SAM-6).

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.privacy.Exact())
    exact
    """

    def __str__(self) -> str:
        return "exact"


@dataclass(frozen=True)
class Approximate:
    """The noise is proved, in `source`, to be within total variation 0 < `tv` < 1 of its law.

    Examples
    --------
    With this sampler, a mechanism calibrated to epsilon-DP has delta = (1 + e^epsilon) tv:

    >>> import geomdp as gd
    >>> sampler = gd.privacy.Approximate(tv=1e-9, source="Theorem 1")
    >>> guarantee = gd.privacy.Guarantee(gd.PureDP(1.0), gd.Adjacency.REPLACE_ONE, sampler)
    >>> print(guarantee.effective)
    (1, 3.71829e-09)-DP
    """

    tv: float
    source: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "tv", probability(self.tv, "tv"))

    def __str__(self) -> str:
        return f"approximate (tv {printed(self.tv)}, {self.source})"


@dataclass(frozen=True)
class Heuristic:
    """Noise from a Markov chain. Nothing is proved about the distribution of this noise (SAM-3).

    `reason` is what is not proved, for instance that the chain mixes within its number of steps.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.privacy.Heuristic("hit-and-run, 1000 steps"))
    heuristic (hit-and-run, 1000 steps)
    """

    reason: str

    def __str__(self) -> str:
        return f"heuristic ({self.reason})"


SamplerStatus = Exact | Approximate | Heuristic
#: Fields of a guarantee that files of records store as they are.
_AS_STORED = ("arithmetic", "seeded", "withdrawn", "max_rows_per_person", "person")


@dataclass(frozen=True)
class Guarantee:
    """The privacy record of one mechanism or release.

    `str(guarantee)` is the claim in words: `privacy` for an exact sampler, `effective` for an
    approximate one (SAM-1). A heuristic sampler has no claim but a target (SAM-3), and a seeded
    release has none, as the seed can remove the noise.

    Parameters
    ----------
    privacy : PureDP, ApproxDP or ZCDP
        The parameters to which the noise is calibrated.
    adjacency : Adjacency
        The neighbour relation.
    sampler : Exact, Approximate or Heuristic
        How the noise is drawn.
    arithmetic : str
        Caveat on the arithmetic of the sampler (SAM-6).
    seeded : bool
        Whether the caller supplied a seed or the random generator.
    withdrawn : str
        Why there is no claim, such as "edges of income were read from the records"; else empty.
    max_rows_per_person : int, optional
        If given, neighbours differ by a person with any number of rows, of which at most this many
        were counted. By default they differ by a row: a person with several is less protected.
    person : str, optional
        The column that names the person of a row. Losses add up only for persons of one column.

    Examples
    --------
    >>> import geomdp as gd
    >>> mechanism = gd.mechanisms.Laplace(gd.workloads.Histogram(3), n=100, privacy=gd.PureDP(1.0))
    >>> mechanism.guarantee
    Guarantee(1-DP, replace-one, exact sampler)
    >>> print(mechanism.guarantee.as_seeded())
    seeded: no privacy claim
    """

    privacy: Privacy
    adjacency: Adjacency
    sampler: SamplerStatus
    arithmetic: str = FLOAT64_CAVEAT
    seeded: bool = False
    withdrawn: str = ""
    max_rows_per_person: int | None = None
    person: str | None = None

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        checked_adjacency(self.adjacency)
        if not isinstance(self.sampler, Exact | Approximate | Heuristic):
            raise ValueError(
                f"sampler must be Exact, Approximate or Heuristic, got {self.sampler!r}"
            )
        require_type(self.seeded, bool, "seeded")
        require_type(self.withdrawn, str, "withdrawn")
        if self.person is not None and self.max_rows_per_person is None:
            given = self.person, self.max_rows_per_person
            raise ValueError(f"person and max_rows_per_person belong together, got {given}")
        if self.max_rows_per_person is not None:
            whole(self.max_rows_per_person, "max_rows_per_person")
            if self.adjacency is not Adjacency.ADD_REMOVE:
                raise ValueError(
                    "max_rows_per_person needs add/remove: replace-one makes n public, which tells "
                    "how many rows a person has"
                )

    @property
    def is_claim(self) -> bool:
        """Whether something is proved: no seed, no heuristic sampler, and not withdrawn."""
        return not (self.seeded or self.withdrawn or isinstance(self.sampler, Heuristic))

    @property
    def effective(self) -> Privacy:
        """The guarantee proved for the sampler as implemented, in real arithmetic (SAM-1).

        It ignores `seeded` and `withdrawn`, but such a release has no guarantee. ``ValueError`` for
        a heuristic sampler, or an approximate one if the definition is zCDP or delta reaches 1/2.
        """
        match self.sampler:
            case Exact():
                return self.privacy
            case Heuristic():
                raise ValueError(f"nothing is proved for a {self.sampler} sampler")
            case Approximate(tv=tv):
                if isinstance(self.privacy, ZCDP):
                    raise ValueError("an approximate sampler gives no zCDP guarantee; use PureDP")
                delta = self.privacy.delta if isinstance(self.privacy, ApproxDP) else 0.0
                epsilon = self.privacy.epsilon
                total = rounded_up(lambda e, d, tv: d + (1 + e.exp()) * tv, epsilon, delta, tv)
                return ApproxDP(epsilon, total)

    def as_seeded(self) -> Guarantee:
        """The record of a release with the caller's seed or generator. Its noise is in float64."""
        return replace(self, arithmetic=FLOAT64_CAVEAT, seeded=True)

    def without_claim(self, reason: str) -> Guarantee:
        """The record of a release without a claim, for `reason`; the same if `reason` is empty."""
        return replace(self, withdrawn=reason) if reason else self

    def for_persons(self, max_rows: int | None, person: str | None = None) -> Guarantee:
        """This guarantee for a row under add/remove as one for persons; the same for None.

        A person has any number of rows, of which at most k = `max_rows` are counted, chosen by a
        rule that looks at no other rows. Proof: if tables differ by a person, the counted rows
        differ by at most k rows, all added or all removed. So a chain of at most k pairs of
        neighbours joins them, and group privacy gives the claim (GEN-2).
        """
        if max_rows is None:
            return self
        privacy = group_privacy(self.privacy, max_rows)
        return replace(self, privacy=privacy, max_rows_per_person=max_rows, person=person)

    @property
    def protected(self) -> str:
        """What neighbours differ by, in words."""
        k = self.max_rows_per_person
        rows = "1 row is" if k == 1 else f"{k} rows are"
        named = "" if self.person is None else f", by the column {self.person}"
        return "a row" if k is None else f"a person, of whom at most {rows} counted{named}"

    def __repr__(self) -> str:
        void = (", seeded" if self.seeded else "") + (", withdrawn" if self.withdrawn else "")
        who = "" if self.max_rows_per_person is None else f" of {self.protected}"
        return (
            f"Guarantee({self.privacy}, {self.adjacency.value}{who}, {self.sampler} sampler{void})"
        )

    def __str__(self) -> str:
        if self.seeded or self.withdrawn:
            seeded = "seeded: " if self.seeded else ""
            reason = f": {self.withdrawn}" if self.withdrawn else ""
            return f"{seeded}no privacy claim{reason}"
        if isinstance(self.sampler, Heuristic):
            claim = f"{self.sampler}, target {self.privacy}"
        else:
            claim = str(self.effective)
        return f"{claim}, {self.adjacency.value}; protects {self.protected}; {self.arithmetic}"

    def to_dict(self) -> dict[str, object]:
        """The record as plain values for JSON; the claim in words is under the key `statement`."""
        return {
            "statement": str(self),
            "definition": type(self.privacy).__name__,
            "parameters": self.privacy.parameters(),
            "adjacency": self.adjacency.value,
            "sampler": type(self.sampler).__name__.lower(),
            "sampler_details": asdict(self.sampler),
            **{name: getattr(self, name) for name in _AS_STORED},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Guarantee:
        """The guarantee in a dict from `to_dict`; ``ValueError`` if incomplete or inconsistent."""
        samplers = {kind.__name__.lower(): kind for kind in (Exact, Approximate, Heuristic)}
        try:
            guarantee = cls(
                privacy_from_parameters(record["definition"], record["parameters"]),
                Adjacency(record["adjacency"]),
                samplers[record["sampler"]](**record["sampler_details"]),
                record["arithmetic"],
                record["seeded"],
                record.get("withdrawn", ""),  # absent in older files, as are the next
                record.get("max_rows_per_person"),
                record.get("person"),
            )
            statement = record["statement"]
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"this is not a privacy record, a field is missing or wrong: {error}"
            ) from error
        words = str(guarantee)
        if "max_rows_per_person" not in record:  # an older file does not say what is protected
            words = words.replace("; protects a row", "", 1)
        if words != statement:
            raise ValueError(f"the record's statement must be {words!r}, got {statement!r}")
        return guarantee
