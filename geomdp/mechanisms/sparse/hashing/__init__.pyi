from .signs import HashedSigns as HashedSigns
