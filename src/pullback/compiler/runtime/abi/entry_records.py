"""Records that the native entry reads: the positions of their fields, in 64-bit words.

A plan, which ``make_entry`` writes, has the words of ``PLAN``, then a row of checks of the arguments (``CHECK``), one
of results (``OUTPUT``), one of the steps that build the returned tree (``BUILD``), and the initial table of slots.
"""

from __future__ import annotations

HEAD = (
    "run",  # where the address of the program's code is
    "arguments",  # their number
    "checks",  # number of checks
    "results",  # number of results
    "slots",  # number of slots
    "arena",  # bytes of the arena, 0 for none
    "arena_from",  # the slot of an argument that is used as the arena, -1 for none
    "release",  # whether the interpreter's lock is released while the program runs
    "containers",  # number of lists, tuples, dicts and values of dicts in the arguments, with the arguments themselves
    "steps",  # number of steps that build the result
    "checks_at", "results_at", "steps_at", "slots_at",  # where these rows begin in the plan
    "forwards",  # whether the leaves of the arguments are passed to a function instead of running a program
    "switch",  # address of a word: unless it is 0, all arguments are passed on
    "flag",  # the slot of a truth value: if the program sets it, the arguments are passed on
)  # fmt: skip
PLAN = {name: place for place, name in enumerate(HEAD)}
CHECK = {
    "kind": 0,
    "container": 1,  # the number of the container that the object is in
    "index": 2,  # its index there
    "slot": 3,  # where the address of its elements goes; of a container: its own number
    "object": 4,  # address of its dtype or type, of a tuple of a dict's keys, or of the object itself
    "count": 5,  # the number of the dtype, or the length of a container
    "rank": 6,
    "scalar_type": 7,  # of an array: address of the type of NumPy's scalars that it may be, if it has no axes
    "values": 7,  # of a dict: the number of its first value among the containers
    "shape": 8,  # the first of ``rank`` lengths
}
OUTPUT = {
    "slot": 0,  # the slot through which the program writes it, -1 if it is copied
    "copied": 1,  # the slot that it is copied from after the program ran, -1 if it is written by the program
    "bytes": 2,
    "dtype": 3,  # address of its dtype, 0 for a Python number
    "rank": 4,
    "shape": 5,  # the first of ``rank`` lengths
}
BUILD = {
    "kind": 0,
    "count": 1,  # the number of a result, or of the parts that a container takes off the stack
    "object": 2,  # address of an object or type, or of a tuple of keys
    "words": 3,  # no field: the length of a step
}
# Kinds of checks: what an argument, or what is in it, must be.  INTEGER is a Python int, IDENTICAL a certain object.
ARRAY, SCALAR, LIST, TUPLE, DICT, IDENTICAL, INTEGER = range(7)
# Kinds of steps, which build the result on a stack.  OBJECT pushes a certain object.
RESULT, MAKE_TUPLE, MAKE_OTHER_TUPLE, MAKE_LIST, MAKE_DICT, OBJECT = range(6)
