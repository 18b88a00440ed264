"""From an LLVM module to a function that can be called: linking, caching, calling."""
