"""Other libraries: NumPy's functions on tensors, and DLPack."""

from pullback.interop import numpy as numpy  # registers the handlers of NumPy's protocols
from pullback.interop import numpy_methods as numpy_methods  # gives tensors the methods of NumPy's arrays
