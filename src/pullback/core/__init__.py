"""The engine: tensors, tapes and ops in general; it refers to no op by name."""
