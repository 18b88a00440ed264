"""Other libraries: NumPy's functions on tensors, and DLPack."""

from pullback.interop import numpy as numpy, sparse as sparse  # registers the handlers of NumPy's protocols
