"""The writer of LLVM text for functions that work on tensors, metas and steps."""

from __future__ import annotations

from collections.abc import Mapping

from pullback.compiler.runtime.abi.code_writer import ObjectWriter
from pullback.compiler.runtime.abi.eager_records import ARRAY, META, REGISTERS
from pullback.compiler.runtime.abi.layout import OFFSETS


class TensorWriter(ObjectWriter):
    """A writer of functions that read and fill the slots of tensors, metas and steps."""

    slots: Mapping[str, int] = {}  # the offset of each slot, in bytes, which ``write_code`` sets

    def slot(self, x: str, name: str) -> str:
        """Return what a slot of an object refers to, without a new reference."""
        return self.load("ptr", x, self.slots[name])

    def set_slot(self, r: str, name: str, x: str, hold: bool = True) -> None:
        """Store an object in an empty slot; without ``hold`` the slot takes over the caller's reference."""
        if hold:
            self.incref(x)
        self.store("ptr", x, r, self.slots[name])

    def replace_slot(self, r: str, name: str, x: str) -> None:
        """Store an object in a slot, which takes over the caller's reference, and release what was there."""
        before = self.slot(r, name)
        self.store("ptr", x, r, self.slots[name])
        self.decref(before)

    def find_record(self, m: str, failed: str, odd: str) -> tuple[str, str]:
        """Return the record of a meta and its data; jump to ``odd`` if Python must treat the meta's tensors."""
        record = self.call("ptr", "@find_record", f"ptr {m}")
        self.require(self.compare("ne", record, "null"), failed)
        self.require_type(record, "@bytes_type", odd)
        return record, self.at(record, OFFSETS["BYTES_DATA"])

    def find_array_record(self, m: str, failed: str, odd: str) -> tuple[str, str]:
        """Return the same; jump to ``odd`` also if the values of the meta's tensors are no arrays."""
        record, code = self.find_record(m, failed, odd)
        self.require(self.compare("eq", self.word(code, META["kind"]), ARRAY, "i64"), odd)
        return record, code

    def allocate_registers(self) -> tuple[str, str]:
        """Return the addresses of two arrays for ``run``: the address, and the two strides, of each register."""
        return self.allocate(f"[{REGISTERS} x ptr]"), self.allocate(f"[{2 * REGISTERS} x i64]")

    def run_program(self, program: str, memory: str, strides: str, code: str, anew: bool = False) -> str:
        """Return the floating-point flags that the loops of a program set; ``anew``: see ``write_run``."""
        arguments = [f"ptr {v}" for v in (program, memory, strides, code)]
        return self.call("i32", "@run_anew" if anew else "@run", *arguments)
