"""Plain NumPy routines that ops share."""
