"""LLVM code that factors matrices and solves linear equations."""
