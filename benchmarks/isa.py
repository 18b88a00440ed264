"""``--isa``: cap the instruction set of every library alike.

Imported before NumPy, which looks at the CPU when it is loaded.
"""

from __future__ import annotations

import argparse
import os
import sys

# What each library reads, and its name for the instruction set.
VARIABLES = {
    "avx2": {
        "PULLBACK_MAX_ISA": "avx2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    "sse4": {
        "PULLBACK_MAX_ISA": "sse4",
        "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    },
}


def add_isa_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--isa`` to the options of a benchmark; it has taken effect when this module was imported."""
    parser.add_argument("--isa", choices=VARIABLES, help="cap the instruction set of every library at this one")


def cap_instruction_set(arguments: list[str]) -> None:
    """Set the environment variables for the ``--isa`` among the arguments; flags that are set already are kept."""
    for place, argument in enumerate(arguments):
        if argument == "--isa" or argument.startswith("--isa="):
            name = argument.partition("=")[2] or "".join(arguments[place + 1 : place + 2])
            for variable, value in VARIABLES.get(name, {}).items():
                os.environ[variable] = (
                    f"{os.environ.get(variable, '')} {value}".strip() if "FLAGS" in variable else value
                )


cap_instruction_set(sys.argv[1:])
