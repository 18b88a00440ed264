"""The one door to llvmlite: text becomes object code, and object code becomes functions that can be called.

Also here: what is known of the processor, and where NumPy keeps its BLAS, whose matrix product compiled programs call.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import suppress
from functools import lru_cache
from itertools import takewhile
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.cache import NOTHING
from pullback.compiler.image import Loaded, packed, possible, taken_in, unpacked
from pullback.errors import CompileError

__all__ = [
    "Library", "Processor", "TranslatorError", "blas", "code_key", "host", "library", "object_code", "recalled",
    "there",
]  # fmt: skip

_lock = threading.RLock()
IMAGE, OBJECT = b"I", b"O"  # what kept code begins with
NOT_LOADED = OSError, ValueError, KeyError  # no memory that can be run, an unknown function, no image at all
CPUINFO = "/proc/cpuinfo"
SAME_FOR_ALL = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features")  # of cores of one machine


@lru_cache(1)
def there() -> bool:
    """Whether machine code can be made here."""
    try:
        import llvmlite  # noqa: F401
    except ImportError:
        return False
    return ctypes.sizeof(ctypes.c_void_p) == 8


class Processor(NamedTuple):
    """What LLVM is to make code for, in its own words."""

    triple: str
    cpu: str = ""
    features: str = ""

    @property
    def lanes(self) -> int:
        """Bytes in a vector register: 16 are there on x86-64 and aarch64 in any case."""
        there = self.features.split(",")
        return 64 if "+avx512f" in there else 32 if "+avx2" in there else 16


class Host:
    """The processor, as far as it is known without LLVM, whose import takes longer than loading a program.

    Of another one everything is told.
    """

    def __init__(self, processor: Processor | None = None) -> None:
        import llvmlite

        self.processor = processor
        features: dict[str, bool] = getattr(np._core._multiarray_umath, "__cpu_features__", {})  # type: ignore[attr-defined]
        self.lanes = 64 if features.get("AVX512F") else 32 if features.get("AVX2") else 16
        if processor is not None:
            self.lanes, self.version = processor.lanes, f"{llvmlite.__version__} {processor}"
            return
        about = os.path.join(os.path.dirname(llvmlite.__file__), "binding")
        built = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in os.scandir(about) if "llvmlite" in f.name]
        cpu = _cpu() if possible() else "\n".join(translator().cpu)
        self.version = (
            f"{llvmlite.__version__} {sorted(built)} {sys.platform} {cpu} {sorted(k for k in features if features[k])}"
        )


def _cpu() -> str:
    """What Linux says of the first core, or what LLVM says where that cannot be read."""
    try:
        with open(CPUINFO) as file:
            first = "".join(takewhile(str.strip, file))
    except OSError:
        first = ""
    found = [line for line in first.splitlines() if line.startswith(SAME_FOR_ALL)]
    return "\n".join(found or translator().cpu)


@lru_cache(1)
def host() -> Host:
    return Host()


class Translator:
    """LLVM, ready to make code for this processor, or for another one."""

    def __init__(self, processor: Processor | None = None) -> None:
        import llvmlite.binding as llvm

        self.llvm = llvm
        if processor is None:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            self.target = llvm.Target.from_default_triple()
            self.cpu = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        else:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
            self.target = llvm.Target.from_triple(processor.triple)
            self.cpu = processor.cpu, processor.features
        self.machine = self._machine(3)
        self.count = 0

    def _machine(self, effort: int) -> Any:
        cpu, features = self.cpu
        return self.target.create_target_machine(cpu=cpu, features=features, opt=effort, reloc="pic", codemodel="small")

    def code(self, text: str, effort: int) -> tuple[bytes, dict[str, float]]:
        llvm = self.llvm
        begin = perf_counter()
        module = llvm.parse_assembly(text)
        parsed = perf_counter()
        builder = llvm.create_pass_builder(self.machine, llvm.create_pipeline_tuning_options(speed_level=2))
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, builder)
        improved = perf_counter()
        code: bytes = (self.machine if effort == 3 else self._machine(effort)).emit_object(module)
        done = perf_counter()
        spent = {"parse": parsed - begin, "passes": improved - parsed, "codegen": done - improved}
        return code, {name: seconds * 1e3 for name, seconds in spent.items()}

    def linked(self, code: bytes, names: list[str], imports: dict[str, int]) -> Any:
        """What LLVM's own linker makes of object code."""
        self.count += 1
        builder = self.llvm.JITLibraryBuilder().add_object_img(code)
        for name in names:
            builder = builder.export_symbol(name)
        for name, address in imports.items():
            builder = builder.import_symbol(name, address)
        return builder.add_current_process().link(_linker(), f"program{self.count}")


class TranslatorError(CompileError):
    """There is llvmlite, but it does not work here."""


@lru_cache(8)
def translator(processor: Processor | None = None) -> Translator:
    try:
        return Translator(processor)
    except (ImportError, OSError, RuntimeError) as error:
        raise TranslatorError(f"compile: llvmlite is installed, but could not be used: {error}") from error


@lru_cache(1)
def _linker() -> Any:
    here = translator()
    return here.llvm.create_lljit_compiler(here.machine, use_jit_link=False)


def object_code(text: str, effort: int = 3) -> tuple[bytes, dict[str, float]]:
    """The object code of a module, and how many milliseconds each part of making it took."""
    with _lock:
        begin = perf_counter()
        here = translator(host().processor)
        started = (perf_counter() - begin) * 1e3
        code, spent = here.code(text, effort)
    return code, {**({"start": started} if started > 1 else {}), **spent}


class Library:
    """Object code in memory, and the addresses of its functions.  The memory is given back when this goes."""

    def __init__(self, data: bytes, names: list[str], imports: dict[str, int]) -> None:
        if data[:1] == IMAGE:
            image = unpacked(data[1:])
            self.held: Any = Loaded(image, {name: imports.get(name) or _known(name) for name in image.imports})
            self.addresses = {name: self.held.addresses[name] for name in names}
        elif data[:1] == OBJECT:
            with _lock:
                self.held = translator().linked(data[1:], names, imports)
                self.addresses = {name: self.held[name] for name in names}
        else:
            raise ValueError("neither an image nor object code")

    def keep(self) -> None:
        """Never give the memory back, not even when the interpreter ends."""
        for x in (self, *(() if isinstance(self.held, Loaded) else (_linker(),))):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


@lru_cache(256)
def _known(name: str) -> int:
    """The address of a function of the C library."""
    for library in (None, "libm.so.6"):
        try:
            function: Any = getattr(ctypes.CDLL(library), name)
            return ctypes.cast(function, ctypes.c_void_p).value or 0
        except (OSError, AttributeError):
            continue
    raise OSError(f"{name} is in no library that is known")


def code_key(text: str, cache: Any, effort: int = 3) -> bytes:
    """The key under which the functions of a module are kept."""
    version = getattr(sys.modules["pullback"], "__version__", "")
    key: bytes = cache.key(text, host().version, version, str(effort))
    return key


def recalled(key: bytes, names: list[str], imports: dict[str, int], cache: Any) -> Library | None:
    """The functions that are kept under a key."""
    data: bytes | None = cache.get(key)
    if data is not None:
        with suppress(*NOT_LOADED):
            return Library(data, names, imports)
    return None


def library(
    text: str, names: list[str], imports: dict[str, int], cache: Any = NOTHING, effort: int = 3
) -> tuple[Library, dict[str, float]]:
    """The functions of a module: out of the cache if it is there, else made, and kept."""
    key = code_key(text, cache, effort)
    begin = perf_counter()
    found = recalled(key, names, imports, cache)
    if found is not None:
        return found, {"load": (perf_counter() - begin) * 1e3}
    code, spent = object_code(text, effort)
    begin = perf_counter()
    image = taken_in(code) if possible() else None
    made = None
    if image is not None:
        data = IMAGE + packed(image)
        with suppress(*NOT_LOADED):
            made = Library(data, names, imports)
    if made is None:  # LLVM's own linker
        data = OBJECT + code
        made = Library(data, names, imports)
    loaded = perf_counter()
    cache.put(key, data)
    return made, {**spent, "load": (loaded - begin) * 1e3, "keep": (perf_counter() - loaded) * 1e3}


@lru_cache(1)
def blas() -> dict[str, int]:
    """The addresses of the matrix products in NumPy's own BLAS; empty if it has none that can be found."""
    package = os.path.dirname(np.__file__)
    for folder in (os.path.join(os.path.dirname(package), "numpy.libs"), os.path.join(package, ".dylibs")):
        for file in os.listdir(folder) if os.path.isdir(folder) else []:
            if "openblas" not in file:
                continue
            try:
                found = {}
                loaded = ctypes.CDLL(os.path.join(folder, file))
                for letter in "sd":
                    function: Any = getattr(loaded, f"scipy_cblas_{letter}gemm64_")
                    found[f"{letter}gemm"] = ctypes.cast(function, ctypes.c_void_p).value or 0
                return found
            except (OSError, AttributeError):
                continue
    return {}
