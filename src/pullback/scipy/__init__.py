"""``pb.scipy``: differentiable functions with the names and signatures of SciPy's.

>>> from pullback.scipy import stats
>>> pb.grad(lambda scale: stats.norm.logpdf(1.0, loc=0.0, scale=scale))(2.0)
-0.375

A function that is not differentiable here is SciPy's own, wrapped to raise an error for traced values.
"""

from pullback.scipy import fft as fft
from pullback.scipy import integrate as integrate
from pullback.scipy import interpolate as interpolate
from pullback.scipy import linalg as linalg
from pullback.scipy import ndimage as ndimage
from pullback.scipy import optimize as optimize
from pullback.scipy import signal as signal
from pullback.scipy import spatial as spatial
from pullback.scipy import special as special
from pullback.scipy import stats as stats
from pullback.scipy.installation import install as install
from pullback.scipy.installation import is_installed as is_installed
from pullback.scipy.installation import uninstall as uninstall

__all__ = [
    "fft", "install", "integrate", "interpolate", "is_installed", "linalg", "ndimage", "optimize", "signal",
    "spatial", "special", "stats", "uninstall",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
