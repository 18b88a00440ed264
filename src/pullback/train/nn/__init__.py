"""Layers, models, initializers and regularizers."""
