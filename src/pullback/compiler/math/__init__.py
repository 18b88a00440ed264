"""Scalar functions on vectors of lanes, as LLVM code."""
