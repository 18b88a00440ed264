"""The engine: knows what an op is, knows none by name."""
