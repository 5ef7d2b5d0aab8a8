from .advisor import Advice as Advice
from .advisor import advise as advise
from .bracket import Bracket as Bracket
from .bracket import sample_complexity_bracket as sample_complexity_bracket
from .error_curve import Quantity as Quantity
from .error_curve import error_table as error_table
