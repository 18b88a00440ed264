"""HTML representations of objects in notebooks, without scripts, style sheets or a network; progress bars."""
