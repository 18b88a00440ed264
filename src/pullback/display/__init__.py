"""HTML for notebooks: what objects show as the result of a cell, without scripts, style sheets or a network."""
