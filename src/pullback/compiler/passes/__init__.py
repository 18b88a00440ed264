"""From graph to graph: simplification and legalization."""
