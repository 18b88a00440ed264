"""LLVM code of convolutions and pooling."""
