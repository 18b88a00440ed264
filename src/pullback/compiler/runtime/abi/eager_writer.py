"""The writer of LLVM text for functions that work on tensors, metas and steps.

Names that the written functions have in common:

m, record, fields   a meta, its record (a bytes object), and the address of the record's words (``META``)
r, x, y, g          a node, its operands, and its cotangent
``python``          the label at which a function returns without having changed anything, for Python to do its work
``failed``          the label at which a function returns after an error, which is set
"""

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

    def meta_field(self, fields: str, name: str, kind: str = "i64") -> str:
        """Return a field of a meta's record."""
        return self.word(fields, META[name], kind)

    def find_record(self, m: str, failed: str, otherwise: str) -> tuple[str, str]:
        """Return the record of a meta and its words; jump to ``otherwise`` if Python must treat the meta's tensors."""
        record = self.call("ptr", "@find_record", f"ptr {m}")
        self.require(self.compare("ne", record, "null"), failed)
        self.require_type(record, "@bytes_type", otherwise)
        return record, self.at(record, OFFSETS["BYTES_DATA"])

    def find_array_record(self, m: str, failed: str, otherwise: str) -> tuple[str, str]:
        """Return the same; jump to ``otherwise`` also if the values of the meta's tensors are no arrays."""
        record, fields = self.find_record(m, failed, otherwise)
        self.require(self.compare("eq", self.meta_field(fields, "kind"), ARRAY, "i64"), otherwise)
        return record, fields

    def find_elements(self, v: str, fields: str, strides: str, otherwise: str) -> str:
        """Return the address of a value's elements and store its two strides; jump to a label if it does not fit."""
        at = self.call_pointers("ptr", "@find_elements", v, fields, strides)
        self.require(self.compare("ne", at, "null"), otherwise)
        return at

    def allocate_registers(self) -> tuple[str, str]:
        """Return the addresses of two arrays for ``run_program``: the address and the two strides of each register."""
        return self.allocate(f"[{REGISTERS} x ptr]"), self.allocate(f"[{2 * REGISTERS} x i64]")

    def run_program(self, program: str, memory: str, strides: str, fields: str, repeatable: bool = False) -> str:
        """Return the floating-point flags that the loops of a program set.

        ``repeatable``: the program does not write to what it reads, so that it may be run twice (``run_repeatable``).
        """
        function = "@run_repeatable" if repeatable else "@run_program"
        return self.call_pointers("i32", function, program, memory, strides, fields)
