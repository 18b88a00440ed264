"""Functions of functions.  No transformation knows any op by name."""
