"""The functions of the Array API standard on tensors; `pullback.array_api` is the namespace that has them."""
