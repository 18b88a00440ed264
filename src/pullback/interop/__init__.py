"""Other libraries: NumPy's functions on tensors, DLPack, and what other libraries are told of tensors."""

from pullback.interop import libraries as libraries  # waits for the libraries that want to be told of tensors
from pullback.interop import numpy as numpy  # registers the handlers of NumPy's protocols
from pullback.interop import numpy_methods as numpy_methods  # gives tensors the methods of NumPy's arrays
from pullback.interop import scipy_fourier as scipy_fourier
from pullback.interop import sparse as sparse
