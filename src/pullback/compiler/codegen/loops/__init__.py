"""LLVM code of elementwise and reduction kernels."""
