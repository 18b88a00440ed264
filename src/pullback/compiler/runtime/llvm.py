"""LLVM through llvmlite, which only this module imports: compiles LLVM text to object code, and loads that."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from time import perf_counter
from typing import Any

from pullback.compiler.runtime.abi.object_loader import Loaded, has_loader, link_object, pack_image, unpack_image
from pullback.compiler.runtime.disk_cache import NO_CACHE
from pullback.compiler.target import (
    Target,
    find_llvm_cpu,
    get_cpu_features,
    get_own_target,
    get_target,
    is_arm,
    read_cpuinfo,
)
from pullback.errors import CompileError
from pullback.settings import is_enabled

_lock = threading.RLock()
# Passes of LLVM: the option that leaves one out of code generation, and the one that sets it back.
STRENGTH_REDUCTION = "-disable-lsr=true", "-disable-lsr=false"
SCHEDULER = "-enable-misched=false", "-enable-misched=true"
LATE_SCHEDULER = "-disable-post-ra=true", "-disable-post-ra=false"
COMBINER = "-x86-machine-combiner=false", "-x86-machine-combiner=true"
LONG_BLOCK = 80  # instructions of a basic block: more than one function of a vector, as a rule
IMAGE, OBJECT = b"I", b"O"  # what kept code begins with
NOT_LOADED = OSError, ValueError, KeyError  # no memory that can be run, an unknown function, no image at all


@lru_cache(1)
def llvm_available() -> bool:
    """Return whether llvmlite is installed and pointers have 64 bits."""
    try:
        import llvmlite  # noqa: F401
    except ImportError:
        return False
    return ctypes.sizeof(ctypes.c_void_p) == 8


@lru_cache(8)
def describe_translator(target: Target) -> str:
    """Return all that machine code depends on besides its text: LLVM, the CPU, the target."""
    import llvmlite

    if target.triple:
        return f"{llvmlite.__version__} {tuple(target)}"
    folder = os.path.join(os.path.dirname(llvmlite.__file__), "binding")
    built = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in os.scandir(folder) if "llvmlite" in f.name]
    cpu = (read_cpuinfo() if has_loader() else "") or "\n".join(get_translator(get_own_target()).cpu)
    return f"{llvmlite.__version__} {sorted(built)} {sys.platform} {cpu} {sorted(get_cpu_features())} {tuple(target)}"


class Translator:
    """LLVM, ready to make code for a target."""

    def __init__(self, target: Target) -> None:
        import llvmlite.binding as llvm

        self.llvm = llvm
        if target.triple:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
            self.target = llvm.Target.from_triple(target.triple)
        else:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            self.target = llvm.Target.from_default_triple()
        self.cpu = find_llvm_cpu(target, llvm)
        self.machine = self._make_machine(3)
        self.is_x86 = self.machine.triple.startswith("x86_64")
        self.count = 0

    def _make_machine(self, effort: int) -> Any:
        cpu, features = self.cpu
        return self.target.create_target_machine(cpu=cpu, features=features, opt=effort, reloc="pic", codemodel="small")

    def emit_object(self, text: str, effort: int, longest_block: int) -> tuple[bytes, dict[str, float]]:
        """Return the object code of a module, and the milliseconds of each part of compiling it."""
        begin = perf_counter()
        module = self._parse(text)
        parsed = perf_counter()
        self._optimize(module, longest_block)
        optimized = perf_counter()
        with self._omit_passes(longest_block):
            code: bytes = (self.machine if effort == 3 else self._make_machine(effort)).emit_object(module)
        done = perf_counter()
        spent = {"parse": parsed - begin, "passes": optimized - parsed, "codegen": done - optimized}
        return code, {name: seconds * 1e3 for name, seconds in spent.items()}

    def emit_assembly(self, text: str, longest_block: int) -> str:
        """Return the assembly of a module."""
        module = self._parse(text)
        self._optimize(module, longest_block)
        with self._omit_passes(longest_block):
            return str(self.machine.emit_assembly(module))

    @contextmanager
    def _omit_passes(self, longest_block: int) -> Iterator[None]:
        """Leave passes out of code generation that do not help code with such blocks.

        Strength reduction of loops takes a third of the time, and x86 has the addresses that loops have.  The scheduler
        seeks an order that needs few registers: of 16 it computes in long blocks one register of a vector after the
        other, and each instruction waits for the one before.  In the order of the text the registers take turns.  With
        32 registers both orders are as quick, but the scheduler takes up to a quarter of the time.  The late scheduler,
        after registers are allocated, takes up to a tenth; the CPU finds such an order by itself.  The combiner
        reorders sums of integers and extremes, but not what is rounded; on long blocks it takes up to a thirtieth.

        The options are those of the whole process, so they are set back for others who use LLVM in it.  Code that they
        generate in another thread meanwhile is right too, without these passes.
        """
        omitted = [STRENGTH_REDUCTION, LATE_SCHEDULER] if self.is_x86 else []
        if self.is_x86 and longest_block >= LONG_BLOCK:
            omitted += [SCHEDULER, COMBINER]
        for off, _ in omitted:
            self.llvm.set_option("", off)
        try:
            yield
        finally:
            for _, on in omitted:
                self.llvm.set_option("", on)

    def _parse(self, text: str) -> Any:
        try:
            module = self.llvm.parse_assembly(text)
            module.verify()  # on a module that is not right, code generation would end the process
        except RuntimeError as error:
            raise InvalidCodeError(f"compile: LLVM refused the code that was made: {str(error).strip()}") from error
        return module

    def _optimize(self, module: Any, longest_block: int) -> None:
        """Run the few passes of LLVM that change something: the text is written almost as it is to be.

        The instruction combiner brings instructions into the form from which code generation makes the best code.
        Vector functions, of which long blocks consist, are written in that form, and on them it takes 3 to 12 % of the
        time of LLVM.  Loops with short blocks have up to 8 % more instructions without it.
        """
        llvm = self.llvm
        builder = llvm.create_pass_builder(self.machine, llvm.create_pipeline_tuning_options(speed_level=2))
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        if not self.is_x86 or longest_block < LONG_BLOCK:
            passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, builder)

    def link_with_llvm(self, code: bytes, names: list[str], imports: dict[str, int]) -> Any:
        """Return object code linked by LLVM's own linker."""
        self.count += 1
        builder = self.llvm.JITLibraryBuilder().add_object_img(code)
        for name in names:
            builder = builder.export_symbol(name)
        for name, address in imports.items():
            builder = builder.import_symbol(name, address)
        return builder.add_current_process().link(_get_linker(), f"program{self.count}")


class InvalidCodeError(CompileError):
    """LLVM refused the text of a module, which is a bug of the compiler."""


class TranslatorError(CompileError):
    """There is llvmlite, but it or a library that a program needs cannot be used."""


@lru_cache(8)
def get_translator(target: Target) -> Translator:
    """Return LLVM for a target; raise a TranslatorError if it cannot be used."""
    try:
        return Translator(target)
    except (ImportError, OSError, RuntimeError) as error:
        raise TranslatorError(f"compile: llvmlite is installed, but could not be used: {error}") from error


@lru_cache(1)
def _get_linker() -> Any:
    translator = get_translator(get_own_target())
    # On ARM the older linker may put sections further apart than their relocations reach, which ends the process.
    return translator.llvm.create_lljit_compiler(translator.machine, use_jit_link=is_arm())


def compile_object(
    text: str, effort: int = 3, target: Target | None = None, longest_block: int = 0
) -> tuple[bytes, dict[str, float]]:
    """Return the object code of a module, and the milliseconds of each part of compiling it."""
    with _lock:
        begin = perf_counter()
        translator = get_translator(target or get_target())
        started = (perf_counter() - begin) * 1e3
        code, spent = translator.emit_object(text, effort, longest_block)
    return code, {**({"start": started} if started > 1 else {}), **spent}


def compile_assembly(text: str, target: Target, longest_block: int = 0) -> str:
    """Return the assembly of a module, as it is compiled for a target."""
    with _lock:
        return get_translator(target).emit_assembly(text, longest_block)


def get_llvm_version() -> str:
    """Return the version of LLVM that llvmlite has."""
    import llvmlite.binding as llvm

    return ".".join(map(str, llvm.llvm_version_info))


class LoadedCode:
    """Object code in memory, and the addresses of its functions.  The memory is given back when this goes."""

    def __init__(self, data: bytes, names: list[str], imports: dict[str, int]) -> None:
        self.rare = ctypes.c_int64()  # not 0: a slow path was needed that is not in the code
        imports = {**imports, "rare": ctypes.addressof(self.rare)}
        if data[:1] == IMAGE:
            image = unpack_image(data[1:])
            self.held: Any = Loaded(image, {name: imports.get(name) or _find_symbol(name) for name in image.imports})
            self.addresses = {name: self.held.addresses[name] for name in names}
        elif data[:1] == OBJECT:
            with _lock:
                self.held = get_translator(get_own_target()).link_with_llvm(data[1:], names, imports)
                self.addresses = {name: self.held[name] for name in names}
        else:
            raise ValueError("neither an image nor object code")

    def keep(self) -> None:
        """Keep the memory until the process ends."""
        for x in (self, *(() if isinstance(self.held, Loaded) else (_get_linker(),))):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


@lru_cache(256)
def _find_symbol(name: str) -> int:
    """Return the address of a function of the C library."""
    for library in (None, "libm.so.6"):
        try:
            function: Any = getattr(ctypes.CDLL(library), name)
            return ctypes.cast(function, ctypes.c_void_p).value or 0
        except (OSError, AttributeError):
            continue
    raise OSError(f"{name} is in no library that is known")


def make_code_key(text: str, cache: Any, effort: int = 3, target: Target | None = None) -> bytes:
    """Return the cache key of the object code of a module."""
    version = getattr(sys.modules["pullback"], "__version__", "")
    passes = f"{STRENGTH_REDUCTION} {SCHEDULER} {LATE_SCHEDULER} {COMBINER} instcombine {LONG_BLOCK}"
    made_by = describe_translator(target or get_target()), passes, version, str(effort)
    key: bytes = cache.make_key(text, *made_by, f"object loader {_has_own_loader()}")
    return key


def _has_own_loader() -> bool:
    return has_loader() and is_enabled("object loader")


def load_code(key: bytes, names: list[str], imports: dict[str, int], cache: Any) -> LoadedCode | None:
    """Return the functions that are kept under a key; None if there are none."""
    data: bytes | None = cache.get(key)
    if data is not None:
        with suppress(*NOT_LOADED):
            return LoadedCode(data, names, imports)
    return None


def get_code(
    text: str,
    names: list[str],
    imports: dict[str, int],
    cache: Any = NO_CACHE,
    effort: int = 3,
    target: Target | None = None,
    longest_block: int = 0,
    key: bytes | None = None,
) -> tuple[LoadedCode, dict[str, float]]:
    """Return the functions of a module, from the cache, or compiled and kept there.

    ``longest_block``: the instructions of its longest basic block, by which passes of LLVM are chosen.  ``key``: the
    cache key of its object code, if it is known.
    """
    key = key or make_code_key(text, cache, effort, target)
    begin = perf_counter()
    found = load_code(key, names, imports, cache)
    if found is not None:
        return found, {"load": (perf_counter() - begin) * 1e3}
    code, spent = compile_object(text, effort, target, longest_block)
    begin = perf_counter()
    image = link_object(code) if _has_own_loader() else None
    functions = None
    if image is not None:
        data = IMAGE + pack_image(image)
        with suppress(*NOT_LOADED):
            functions = LoadedCode(data, names, imports)
    if functions is None:  # LLVM's own linker
        data = OBJECT + code
        functions = LoadedCode(data, names, imports)
    loaded = perf_counter()
    cache.put(key, data)
    return functions, {**spent, "load": (loaded - begin) * 1e3, "keep": (perf_counter() - loaded) * 1e3}
