from .missing import NoExactPath as NoExactPath
from .release import RoundedNoise as RoundedNoise
from .release import public_grid as public_grid
from .release import rounded_noise as rounded_noise
from .rounding import PrecisionExhausted as PrecisionExhausted
from .vectors import noise_vector as noise_vector
