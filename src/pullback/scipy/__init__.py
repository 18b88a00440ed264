"""``pb.scipy``: differentiable functions under the names and with the signatures of SciPy's.

>>> from pullback.scipy import stats
>>> pb.grad(lambda scale: stats.norm.logpdf(1.0, loc=0.0, scale=scale))(2.0)
-0.375

What is not differentiable here is SciPy's own function, which refuses traced values by name.
"""

from pullback.scipy import (
    fft as fft,
    integrate as integrate,
    interpolate as interpolate,
    linalg as linalg,
    ndimage as ndimage,
    optimize as optimize,
    signal as signal,
    spatial as spatial,
    special as special,
    stats as stats,
)
from pullback.scipy.installation import install as install, is_installed as is_installed, uninstall as uninstall
