from .design import Strategy as Strategy
from .histograms import Haar as Haar
from .histograms import Tree as Tree
