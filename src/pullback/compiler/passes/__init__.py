"""Passes from graph to graph: simplification, loop rolling and legalization."""
