"""Transformations of functions: gradients, Jacobians, forward mode, vmap, checkpoints.  They refer to no op by name."""
