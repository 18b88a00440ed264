"""Other libraries: NumPy's functions on tensors, DLPack, and the registration of tensors with other libraries.

The implementations of NumPy's functions are imported when the first of them is called.
"""

from pullback.interop import libraries as libraries  # waits for the libraries that tensors are registered with
from pullback.interop import numpy_methods as numpy_methods  # gives tensors the methods of NumPy's arrays
from pullback.interop import sklearn_metrics as sklearn_metrics
