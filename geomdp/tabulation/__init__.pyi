from .tabulate import Tabulation as Tabulation
from .tabulate import covariance as covariance
from .tabulate import release as release
