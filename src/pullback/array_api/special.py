"""Special functions under SciPy's names: ``xp.special``, where SciPy looks for them."""

from pullback.ops.special import *  # noqa: F403
