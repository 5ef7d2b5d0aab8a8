from .design import Strategy as Strategy
from .histograms import Haar as Haar
from .histograms import PIdentity as PIdentity
from .histograms import SoftBins as SoftBins
from .histograms import Tree as Tree
from .tables import WeightedMarginals as WeightedMarginals
from .tables import WeightedSigns as WeightedSigns
