"""The hierarchical mechanism: K-norm noise on counts of several resolutions, then least squares."""

from __future__ import annotations

from functools import cached_property

from geomdp.mechanisms.additive_noise.strategy_mechanism import StrategyMechanism
from geomdp.mechanisms.sensitivity import pure_only
from geomdp.mechanisms.strategies import Strategy, hierarchical_strategies
from geomdp.noise import MappedNoise
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Workload


class Hierarchical(StrategyMechanism):
    """Counts of several partitions with K-norm noise of simplex differences, then least squares.

    M(X) = (sum over i of R_i (C_i h + Z_i)) / n, up to what is public: h is the histogram of the
    records, each C_i maps every element to a point of a simplex (a cell of a partition, or a
    mixture of cells), Z_i is K-norm noise with epsilon_i of the difference body of that simplex
    under replace-one (X-SIM) and of the l1 ball, which is Laplace noise, under add/remove. R_i are
    the least-squares weights and the epsilon_i add up to epsilon. The partitions are

    * for tables, the marginals of sets of columns;
    * for listed universes, the better of a binary tree over the elements and of the histogram with
      one coarse set of soft bins (`SoftBins`).

    Parameters and errors are those of `AdditiveMechanism`; `privacy` is a `PureDP`, and `strategy`
    (a `Strategy`) replaces the partitions above. A workload without a known strategy (an infinite
    universe, or one above 2^12 elements that is no table) is a ``ValueError`` on first use.

    Notes
    -----
    Privacy: for all neighbouring X, X' and measurable S,
    Pr[M(X) in S] <= e^epsilon Pr[M(X') in S], in real arithmetic. Replacing a record moves C_i h by
    the difference of two points of the simplex, so that C_i h + Z_i is epsilon_i-DP, all of them
    together are epsilon-DP by composition, and M is a function of them and of n. The partitions
    depend on public arguments only. The sampler is exact for the strategies of this package; for
    another it is what its noise says.

    Error: exactly (sum over i of E ||R_i Z_i||^2 / m)^(1/2) / n per query. Measured against the
    best Laplace strategy known (`Matrix`), as a ratio of errors under replace-one: prefixes of 256
    elements 0.984, ranges of 64 elements 0.985.

    References
    ----------
    Hardt-Talwar 2010, section 7; formula sheet JL-KN, JL-SPLIT, X-SIM.
    """

    privacy: PureDP

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: PureDP,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        strategy: Strategy | None = None,
    ) -> None:
        pure = pure_only(privacy, "Hierarchical")
        super().__init__(workload, n=n, privacy=pure, adjacency=adjacency, strategy=strategy)

    def _strategies(self) -> list[Strategy]:
        return hierarchical_strategies(self.workload)

    @cached_property
    def noise(self) -> MappedNoise:
        """Distribution of Z, on sums of answer vectors; set up on first use."""
        return self._design.noise(self.privacy.epsilon)
