"""SciPy as autograd has it: ``pullback.scipy`` under autograd's names."""

from pullback.autograd.scipy import integrate as integrate
from pullback.autograd.scipy import linalg as linalg
from pullback.autograd.scipy import signal as signal
from pullback.autograd.scipy import special as special
from pullback.autograd.scipy import stats as stats
