from .projector import Projector as Projector
from .projector import project as project
