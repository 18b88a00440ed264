"""Write the table of layers in docs/layers.md; ``--check`` says whether it is up to date.

``--count`` compares with other libraries, whose layers and arguments are in train/io/peer_arguments.py, written
from the packages.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pullback as pb
from pullback.train.io.peer_arguments import KERAS, TFJS
from pullback.train.nn.layers.activations import BY_NAME

PAGE = Path(__file__).resolve().parent.parent / "docs" / "layers.md"
BEGIN, END = "<!-- begin: written by script/layers_table.py -->", "<!-- end -->"
KINDS = {
    "dense": "dense", "activation_layers": "activations", "shaping": "shape", "general": "anything", "noise": "noise",
    "convolution": "convolution", "conv_recurrent": "recurrent", "pooling": "pooling", "borders": "size",
    "normalization": "normalization", "cells": "cells", "recurrent": "recurrent", "wrappers": "wrappers",
    "attention": "attention", "merging": "merging", "preprocessing": "preprocessing",
    "image_preprocessing": "images", "color_preprocessing": "images", "audio_preprocessing": "sound",
    "symbolic": "anything",
}  # fmt: skip
COMMON = {f.name for f in fields(pb.layers.Layer)}
# Of other libraries, what is not counted: what wraps other frameworks, or is no layer.
NOT_LAYERS = {"FlaxLayer", "JaxLayer", "TFSMLayer", "TorchModuleWrapper", "Layer", "InputSpec", "Pipeline"}


def list_layers() -> dict[str, tuple[Any, list[str]]]:
    """Return each layer class by its first name, with its other names."""
    found: dict[int, tuple[Any, list[str]]] = {}
    for name in sorted(n for n in vars(pb.layers) if not n.startswith("_")):
        kind = getattr(pb.layers, name)
        if isinstance(kind, type) and name.islower():
            found.setdefault(id(kind), (kind, []))[1].append(name)
    made = {}
    for kind, names in found.values():
        own = next((n for n in names if n.rstrip("_").replace("_", "") == kind.__name__.lower()), names[0])
        made[own] = kind, [n for n in names if n != own]
    return made


def make_table() -> str:
    """Return the table: kind, layer, arguments."""
    rows: dict[str, list[str]] = {}
    for name, (kind, others) in sorted(list_layers().items()):
        module = kind.__module__.rpartition(".")[2]
        own = sorted((f for f in fields(kind) if f.init and f.name not in COMMON), key=lambda f: bool(f.kw_only))
        takes = ", ".join(f"`{f.name}`" for f in own)
        also = f" ({', '.join(f'`{n}`' for n in others)})" if others else ""
        rows.setdefault(KINDS[module], []).append(f"| `{name}`{also} | {takes} |")
    lines = []
    for group in dict.fromkeys(KINDS.values()):
        lines += ["", f"**{group}**", "", "| layer | arguments |", "|---|---|", *rows.get(group, [])]
    return "\n".join([BEGIN, *lines, "", END])


def print_counts() -> None:
    """Print how many layers and arguments of the other libraries there are here."""
    ours = {kind.__name__.lower(): {f.name for f in fields(kind)} for kind, _ in list_layers().values()}
    for library, table in (("TensorFlow.js", TFJS), ("Keras", KERAS)):
        names = {name: name.lower() for name in table if name not in NOT_LAYERS}
        missing = sorted(name for name, own in names.items() if own not in ours)
        wanted = [(name, a) for name, own in names.items() if own in ours for a in table[name].split()]
        lost = [f"{name}.{a}" for name, a in wanted if a not in ours[names[name]]]
        print(f"{library}: {len(names) - len(missing)} of {len(names)} layers; missing: {', '.join(missing) or 'none'}")
        print(f"  arguments of these: {len(wanted) - len(lost)} of {len(wanted)}; missing: {', '.join(lost) or 'none'}")
    print(f"layers here: {len(list_layers())}; activations by name: {len(BY_NAME)}")


if __name__ == "__main__":
    if "--count" in sys.argv:
        print_counts()
        sys.exit()
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    new = before + make_table() + rest.partition(END)[2]
    if "--check" in sys.argv:
        sys.exit(0 if new == text else "docs/layers.md is not what the layers are: run python script/layers_table.py")
    PAGE.write_text(new)
