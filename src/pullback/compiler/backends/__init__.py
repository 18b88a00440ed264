"""Other array libraries that run a traced graph: JAX, PyTorch and CuPy, on the devices that they have."""
