from .check import check_certificate as check_certificate
from .reading import CertificateRejected as CertificateRejected
