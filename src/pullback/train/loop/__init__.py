"""The training loop: fit, callbacks, metrics, history, progress."""
