"""From a function to machine code: a pipeline, its files in the order in which a program goes through them.

trace, graph, rewrite, fuse, schedule, vectormath, llvm, native, cache.
"""
