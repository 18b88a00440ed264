"""From a graph to kernels in order, with the memory of every value."""
