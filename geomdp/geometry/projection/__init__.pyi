from .one_target import project as project
from .one_target import project_image as project_image
from .projector import Projector as Projector
