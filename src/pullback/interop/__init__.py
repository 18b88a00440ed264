"""The world outside: NumPy's functions on Tensors."""

from pullback.interop import numpy as numpy  # from here on np.f(tensor) is ours
