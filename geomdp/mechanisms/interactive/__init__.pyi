from .updates import Median as Median
from .updates import MultiplicativeWeights as MultiplicativeWeights
from .updates import Perceptron as Perceptron
from .updates import SparseMultiplicativeWeights as SparseMultiplicativeWeights
from .updates import net as net
from .updates import net_fineness as net_fineness
from .updates import net_size as net_size
