from .files import CacheFiles as CacheFiles
from .recall import recalled as recalled
