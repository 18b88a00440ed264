"""Everything that knows the memory layout of CPython, NumPy or object files."""
