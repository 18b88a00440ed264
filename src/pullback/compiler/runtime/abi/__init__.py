"""Everything that depends on the memory layout of CPython, NumPy or object files."""
