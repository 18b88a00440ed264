"""The runtime: from an LLVM module to a callable function, by linking, caching and the native entry."""
