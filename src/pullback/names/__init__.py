"""Names from other libraries: what they are called here, for functions, methods and keyword arguments."""
