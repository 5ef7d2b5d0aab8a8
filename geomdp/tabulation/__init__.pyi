from .covariances import CovarianceTable as CovarianceTable
from .covariances import Regression as Regression
from .covariances import covariance as covariance
from .tabulate import Tabulation as Tabulation
from .tabulate import release as release
