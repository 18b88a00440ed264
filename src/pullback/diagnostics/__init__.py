"""Debugging gradients: checks, where a NaN came from, why a gradient is missing, the recorded program, timing."""
