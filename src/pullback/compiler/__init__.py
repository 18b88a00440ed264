"""From a function to machine code: a pipeline, named here in the order in which a program goes through it.

trace, graph, rewrite, prepare, fuse, plan, kernels, vectormath, products, assembly, machine, cache, native, entry.
"""
