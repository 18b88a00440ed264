"""The program as a graph of nodes: what every stage of the compiler reads."""
