"""From a Python function to a graph: tracing, indexing, result inference."""
