"""Factorizations of matrices, and equations with them."""
