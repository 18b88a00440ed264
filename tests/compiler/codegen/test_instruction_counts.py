"""Kernels have not more instructions and stack accesses per element than the table says.

``python script/instruction_counts.py`` measures them and writes the table.
"""

from __future__ import annotations

import json

import instruction_counts
import pytest

from pullback.compiler.runtime.llvm import get_llvm_version

TABLE = json.loads(instruction_counts.TABLE.read_text())
MORE, LITTLE = 1.1, 0.02  # that is let pass


@pytest.mark.parametrize("isa", instruction_counts.TARGETS)
@pytest.mark.parametrize("name", instruction_counts.KERNELS)
def test_instructions_per_element_do_not_grow(name: str, isa: str) -> None:
    if TABLE["LLVM"] != get_llvm_version():
        pytest.skip("the table is for another version of LLVM")
    found = instruction_counts.count(name, instruction_counts.TARGETS[isa])
    for what, now, before in zip(("instructions", "stack accesses"), found, TABLE[name][isa], strict=True):
        assert now <= before * MORE + LITTLE, f"{what} per element: {before} became {now}"


def test_instruction_counts_find_innermost_loops() -> None:
    lines = [
        ".LBB0_1:",
        "\tvmulps",
        ".LBB0_2:",
        "\tvaddps\t8(%rsp)",
        "\tjne\t.LBB0_2",
        "\tjb\t.LBB0_1",
        "\tjmp\t.LBB0_1",
    ]
    assert instruction_counts.find_innermost_loops(lines) == [(2, 5)]
    assert instruction_counts.STACK.search(lines[3])
