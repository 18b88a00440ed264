"""From kernels in order to one LLVM module."""
