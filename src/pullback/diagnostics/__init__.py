"""Gradients one can trust: checks, where a NaN came from, why a gradient is missing, the recorded program as text."""
