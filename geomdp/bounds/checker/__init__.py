"""Check a lower bound from its file alone.

Shares no code with the constructions: everything here starts from the JSON text (its format is in
`geomdp.bounds.certificate_file`, the argument in `geomdp.bounds.certificate`), and imports nothing
else of geomdp. A certificate is rejected at the first number that is not what it should be, also
where another number would prove as much.
"""

from geomdp.bounds.checker.check import Checked, check_certificate
from geomdp.bounds.checker.reading import CertificateRejected

__all__ = ["CertificateRejected", "Checked", "check_certificate"]
