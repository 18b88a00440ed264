"""Writers of LLVM text for functions that work on Python's objects.

Each method writes one instruction and returns the name of its value (``%v7``), as text.  Conditions branch to a label
where the unusual case is handled, so that the usual path through a function reads from top to bottom.
"""

from __future__ import annotations

from pullback.compiler.runtime.abi.layout import OFFSETS


class Writer:
    """The text of one function: ``Writer("ptr", "name", "ptr x", "i64 n")`` has the arguments ``%x`` and ``%n``."""

    def __init__(self, kind: str, name: str, *parameters: str, internal: bool = True, attributes: str = "") -> None:
        typed = [p.split() for p in parameters]
        named = ", ".join(f"{its} %{p}" for its, p in typed)
        self.head = f"define {'internal ' if internal else ''}{kind} @{name}({named}) {attributes} {{\nstart:\n"
        self.allocations: list[str] = []  # allocations on the stack, which begin the function
        self.lines: list[str] = []
        self.count = 0

    def text(self) -> str:
        """Return the function as LLVM text."""
        return self.head + "".join(f"  {line}\n" for line in self.allocations) + "\n".join(self.lines) + "\n}\n"

    def let(self, expression: str) -> str:
        """Return a new name for the value of an LLVM expression."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {expression}")
        return f"%v{self.count}"

    def do(self, line: str) -> None:
        """Write an instruction that has no value."""
        self.lines.append(f"  {line}")

    # ---- memory

    def allocate(self, kind: str) -> str:
        """Return the address of a new variable or array on the stack (``alloca``)."""
        self.count += 1
        self.allocations.append(f"%p{self.count} = alloca {kind}, align 16")
        return f"%p{self.count}"

    def at(self, address: str, offset: int | str, unit: str = "i8") -> str:
        """Return the address that lies ``offset`` units, by default bytes, after another."""
        return address if offset == 0 else self.let(f"getelementptr {unit}, ptr {address}, i64 {offset}")

    def load(self, kind: str, address: str, offset: int = 0) -> str:
        """Return the value that lies ``offset`` bytes after an address."""
        return self.let(f"load {kind}, ptr {self.at(address, offset)}")

    def store(self, kind: str, value: str | int, address: str, offset: int = 0) -> None:
        """Store a value ``offset`` bytes after an address."""
        self.do(f"store {kind} {value}, ptr {self.at(address, offset)}")

    def word(self, address: str, number: int | str, kind: str = "i64") -> str:
        """Return element ``number`` of the array of 64-bit words at an address."""
        return self.let(f"load {kind}, ptr {self.at(address, number, 'i64')}")

    def set_word(self, value: str | int, address: str, number: int | str, kind: str = "i64") -> None:
        """Store element ``number`` of the array of 64-bit words at an address."""
        self.do(f"store {kind} {value}, ptr {self.at(address, number, 'i64')}")

    # ---- calls

    def call(self, kind: str, function: str, *arguments: str) -> str:
        """Return the result of a function's call; arguments are written with their types."""
        return self.let(f"call {kind} {function}({', '.join(arguments)})")

    def call_pointers(self, kind: str, function: str, *arguments: str) -> str:
        """Return the result of a function's call; all its arguments are pointers."""
        return self.call(kind, function, *(f"ptr {a}" for a in arguments))

    def call_void(self, function: str, *arguments: str) -> None:
        """Call a function without a result."""
        self.do(f"call void {function}({', '.join(arguments)})")

    # ---- conditions

    def compare(self, relation: str, a: str, b: str | int, kind: str = "ptr") -> str:
        """Return the truth value of a comparison by ``relation``, such as ``eq``, ``ne`` or ``slt``."""
        return self.let(f"icmp {relation} {kind} {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.let(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.let(f"or i1 {a}, {b}")

    def select(self, condition: str, kind: str, a: str | int, b: str | int) -> str:
        """Return ``a`` if a condition holds, else ``b`` (``select``)."""
        return self.let(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def require(self, condition: str, otherwise: str) -> None:
        """Go on with the next instruction if a condition holds, else jump to a label."""
        self.count += 1
        self.lines.append(f"  br i1 {condition}, label %b{self.count}, label %{otherwise}")
        self.lines.append(f"b{self.count}:")

    def jump_if(self, condition: str, to: str) -> None:
        """Jump to a label if a condition holds, else go on with the next instruction."""
        self.count += 1
        self.lines.append(f"  br i1 {condition}, label %{to}, label %b{self.count}")
        self.lines.append(f"b{self.count}:")

    def jump(self, to: str) -> None:
        self.lines.append(f"  br label %{to}")

    def label(self, name: str, falls: bool = False) -> None:
        """Begin a block; with ``falls`` the block before jumps to it."""
        if falls:
            self.jump(name)
        self.lines.append(f"{name}:")

    def ret(self, kind: str, value: str | int) -> None:
        """Return from the function with a value."""
        self.lines.append(f"  ret {kind} {value}")

    def ret_void(self) -> None:
        self.lines.append("  ret void")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")

    def loop(self, name: str, count: str) -> str:
        """Begin a loop over the numbers below ``count`` and return the current number; ``end_loop`` ends it."""
        at = self.allocate("i64")
        self.store("i64", 0, at)
        self.label(name, falls=True)
        i = self.load("i64", at)
        self.require(self.compare("slt", i, count, "i64"), f"{name}.done")
        self.store("i64", self.let(f"add i64 {i}, 1"), at)
        return i

    def end_loop(self, name: str) -> None:
        self.jump(name)
        self.label(f"{name}.done")


class ObjectWriter(Writer):
    """A writer of functions that read and hold Python's objects."""

    def type_of(self, x: str) -> str:
        return self.load("ptr", x, OFFSETS["TYPE"])

    def require_type(self, x: str, kind: str, otherwise: str) -> None:
        self.require(self.compare("eq", self.type_of(x), kind), otherwise)

    def incref(self, x: str) -> None:
        """Take a reference to an object."""
        self.call_void("@Py_IncRef", f"ptr {x}")

    def decref(self, x: str) -> None:
        """Release a reference to an object."""
        self.call_void("@Py_DecRef", f"ptr {x}")

    def call_python(self, function: str, arguments: str, count: int, otherwise: str) -> str:
        """Return the result, a new reference, of a Python function; jump to a label if it raises an error.

        ``arguments`` is the address of an array of so many arguments.
        """
        given = f"ptr {function}", f"ptr {arguments}", f"i64 {count}", "ptr null"
        made = self.call("ptr", "@PyObject_Vectorcall", *given)
        self.require(self.compare("ne", made, "null"), otherwise)
        return made

    def call_back(self, function: str, arguments: str, otherwise: str) -> None:
        """Call the Python function that a variable of the module refers to with one argument, for its effect."""
        self.decref(self.call_python(self.load("ptr", function), arguments, 1, otherwise))

    def refcount(self, x: str) -> str:
        return self.load("i32", x)

    def is_none(self, x: str) -> str:
        return self.compare("eq", x, "@none")

    def ret_none(self) -> None:
        self.incref("@none")
        self.ret("ptr", "@none")
