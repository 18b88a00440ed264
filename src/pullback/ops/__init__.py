"""The ops: differentiable functions, each defined by one statement."""
