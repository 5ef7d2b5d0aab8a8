from .projector import Projector as Projector
from .projector import project as project
from .projector import project_image as project_image
