"""Machine code for ops that run one at a time, without ``pb.compile``; ``core.accelerate`` decides when it is used.

Its modules are imported one by one when they are first used: sums need a quarter of what programs of one op import.
"""
