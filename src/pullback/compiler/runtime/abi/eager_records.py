"""Records that the machine code of eager ops reads: the positions of their fields, in 64-bit words.

There are four of them, which ``eager_ops`` writes: of a meta (``META``), of an op (``OP``), of a step of the tape
(``STEP``), and of a backward pass over large arrays (``JOB`` and ``PART``).  They hold the addresses of programs
(``PROGRAM`` and ``CALL``), which ``eager_programs`` writes: a program is a list of calls of NumPy's own inner loops,
whose operands and results are numbered registers.
"""

from __future__ import annotations

SCRATCH = 32 * 1024  # bytes of the largest array that an op computes here, and of each buffer for temporaries
BLOCK = 2048  # elements of large arrays that are computed at a time: dozens of such buffers fit into the cache
REUSED = 4096  # largest cotangent, in bytes, that is copied into the memory of its node's own cotangent

# Of a meta (the shape, dtype and tape that tensors share), written by ``Machine.prepare`` into ``Meta.record``.
ARRAY, SCALAR, NESTED = range(3)  # what the values of its tensors are; nested: tensors of another tape
META = {
    "kind": 0,  # ARRAY, SCALAR or NESTED
    "dtype": 1,  # 0 for float32, 1 for float64
    "itemsize": 2,  # bytes of an element
    "size": 3,  # number of elements
    "nodes": 4,  # address of the list that new nodes are appended to, 0 where nothing is recorded
    "dtype_object": 5,  # address of the dtype object
    "rank": 6,
    "scalar_type": 7,  # address of the type of NumPy's scalars of this dtype
    "rows": 8,  # an array is computed as a matrix: the product of all lengths but the last
    "columns": 9,  # the last length
    "shape": 10,  # the first of ``rank`` lengths
}
# Of an op, written by ``Machine.make_op``; the first word is not used.
OP = {
    "single": 1,  # address of the program for float32
    "double": 2,  # the same for float64
    "function": 3,  # address of the op's function in Python, which performs it on tensors of another tape
    "step": 4,  # address of the step (``tape.Step``) of a node whose inputs are all on the tape
    "left": 5,  # the same where only the first of two inputs is on the tape
    "right": 6,  # the same where only the second is
    "has_shortcuts": 7,  # whether Python performs the op in another way for some numbers
    "fit_x": 8,  # the step where both inputs are on the tape and the first was broadcast
    "fit_y": 9,  # the same where the second was
    "keeps_y": 10,  # whether the rules of ``left`` read the second input
    "max_size": 11,  # elements of the largest array that the program of an op of one input computes
}
# Of a step, written by ``Machine.describe_step`` into ``Step.step_record``.
STEP = {
    "has_second_rule": 0,  # whether both operands have a rule
    "single": 1,  # addresses of the programs of the first operand's rule: for float32, then for float64
    "second_single": 3,  # the same for the second operand's
    "fits_scalars": 5,  # whether the programs also give what NumPy's scalars would
    "fitted": 6,  # which operand (1 or 2) was broadcast, so that its cotangent is summed by ``fit``; 0 for none
    "kind": 7,  # by what the cotangents are computed: BY_PROGRAMS, BY_PICKING, BY_PRODUCTS or BY_SPREADING
    "product": 8,  # which operands of a product of matrices have one: BOTH, LEFT or RIGHT
    "is_mean": 9,  # whether a cotangent that is spread is divided by the number of elements
}
BY_PROGRAMS, BY_PICKING, BY_PRODUCTS, BY_SPREADING = range(4)
BOTH, LEFT, RIGHT = range(3)
# Addresses of routines of BLAS and of what they read, for float32 and for float64; 0 where there is no such BLAS.
BLAS = {
    "gemm": 0,
    "gemv": 2,
    "ones": 4,  # vectors of MAX_SUMMED_ROWS ones
}
MAX_SUMMED_ROWS = 4096  # of a matrix whose rows are summed by a product with ones, as ``fit`` does
# Of a backward pass over several nodes with large values, written by ``Machine.pull_large`` and read by ``run_blocks``.
JOB = {
    "count": 0,  # elements of each array
    "item": 1,  # bytes of an element
    "sum": 2,  # address of the program that adds two cotangents
    "scratch": 3,  # address of memory for temporaries
    "parts": 4,  # number of parts
    "block": 5,  # the block that is being computed; ``run_blocks`` counts it up
    "part": 6,  # the part that is next in this block; ``run_blocks`` counts it up
    "first": 7,  # the first part; the others follow
}
# One part of a job for each operand of each node: the rule that computes the operand's cotangent.  A place is three
# words: an address, the stride from element to element, and by how many bytes per element the address of the next
# block lies further on, which is 0 for a single number and for a buffer that every block uses again.
PART = {
    "program": 0,  # address of the program of the rule
    "inputs": 1,  # four places: the cotangent, the result and the operands of the node
    "before": 13,  # the place of a cotangent that the new one is added to; all 0 for none
    "out": 16,  # the place where the cotangent is written
    "reported": 19,  # floating-point flags that ``run_blocks`` does not return: ignored by the user, or known already
    "words": 20,  # no field: the length of a part
}
# A program, written by ``eager_programs``.
PROGRAM = {
    "length": 0,  # number of calls
    "fits_scalars": 1,  # whether NumPy computes its scalars by the same loops
    "reads": 2,  # bit i is set if input register i is read
    "calls": 3,  # the first call; the others follow
}
CALL = {
    "loop": 0,  # address of NumPy's inner loop
    "data": 1,  # address of the data that it is called with
    "inputs": 2,  # their number, 1 or 2
    "first": 3,  # an input: a register, or the address of a constant where the number is not below REGISTERS
    "second": 4,
    "out": 5,  # the register of the result
}

# Registers 0 to 3 are inputs: of a rule the cotangent, the result and the two operands of a node, of an op its inputs.
# Register 4 (OUT) is the result, the others are temporaries.
INPUTS, OUT, REGISTERS = 4, 4, 8
FLAGS = 0x1D  # of floating-point arithmetic: invalid (1), division by zero (4), overflow (8), underflow (16)
SUM_OF_SCALARS = 0x100  # added to the flags of a sum of cotangents if these are scalars, not arrays
SUM_SHIFT = 8  # bits by which ``run_blocks`` shifts the flags of a sum, to return them beside those of the rule
