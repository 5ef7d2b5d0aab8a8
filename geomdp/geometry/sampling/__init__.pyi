from .chains import CoordinateHitAndRun as CoordinateHitAndRun
from .chains import HitAndRun as HitAndRun
from .chains import Kernel as Kernel
from .chains import bulk_ess as bulk_ess
from .chains import run_chains as run_chains
from .chains import split_r_hat as split_r_hat
from .samplers import ExactSampler as ExactSampler
from .samplers import sample_uniform as sample_uniform
