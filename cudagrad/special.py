"""Special functions by their names in ``torch.special``."""

from .ops import listed
from .ops.error_function import erf, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri
from .ops.pointwise import exp2, expm1, log1p
from .ops.pointwise import sigmoid as expit
from .ops.reduction import logsumexp
from .ops.rounding import round
from .ops.softmax import log_softmax, softmax
from .ops.special import digamma, entr, i0, i0e, i1, i1e, logit, polygamma, sinc, xlog1py, xlogy, zeta
from .ops.special import digamma as psi
from .ops.special import lgamma as gammaln
from .ops.special import mvlgamma as multigammaln

__all__ = ["digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "i0e"]
__all__ += ["i1", "i1e", "log1p", "log_ndtr", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "polygamma"]
__all__ += ["log_softmax", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy", "zeta"]

globals().update(listed("SPECIAL"))  # orthogonal polynomials
__all__ += list(listed("SPECIAL"))
