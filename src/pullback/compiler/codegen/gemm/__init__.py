"""LLVM code of matrix products."""
