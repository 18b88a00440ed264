"""SciPy as autograd has it."""
