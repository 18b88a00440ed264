"""The intermediate representation: a program as a graph of nodes, which every stage of the compiler reads."""
