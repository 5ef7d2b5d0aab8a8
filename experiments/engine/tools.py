"""What scripts use of the engine: ``import experiments.engine.tools as ex``."""

# ruff: noqa: F401
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.engine.cells import Outcome, Row, Rows, Sweep, product
from experiments.engine.checks import (
    agrees_with_prediction,
    is_below,
    predicted_columns,
    release_columns,
    slopes_are,
    slopes_by,
    slopes_lie_within,
    stays_below_prediction,
)
from experiments.engine.claims import (
    Aim,
    Claim,
    Claims,
    Goal,
    Goals,
    NoLimit,
    Verdict,
    above,
    allowed,
    at_least,
    at_most,
    below,
    between,
    each_case,
    in_order,
    inverse_share,
    near,
    not_rare,
    offset,
    position,
    same_names,
    share,
)
from experiments.engine.drawing import (
    BAND_LEVEL,
    GREY,
    HOLLOW,
    IMPOSSIBLE,
    QUIET,
    SMALL,
    Curve,
    Look,
    draw_impossible,
    draw_intervals,
    draw_measured,
    draw_points,
    draw_predicted,
    draw_theory,
    headline,
    ink,
    label_curves,
    label_ticks,
    log_axes,
    note,
    panels,
    shared_legend,
    ticks,
)
from experiments.engine.statistics import (
    LEVEL,
    FloatArray,
    MeanSquare,
    Slope,
    deviation,
    log_log_slope,
    pooled_along,
    pooled_by,
    quantile,
)
