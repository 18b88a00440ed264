"""Other libraries: NumPy's functions on tensors, and DLPack."""

from pullback.interop import numpy as numpy  # registers the handlers of NumPy's protocols
from pullback.interop import scipy_fourier as scipy_fourier
from pullback.interop import sparse as sparse
