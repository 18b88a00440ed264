"""Write train/io/peer_arguments.py: the layers of TensorFlow.js and Keras with their arguments, from the packages.

cd FOLDER_WITH_TFJS && node script/tfjs_arguments.cjs > tfjs.json
KERAS_BACKEND=torch PYTHON_WITH_KERAS script/peer_arguments.py --keras > keras.json
python script/peer_arguments.py tfjs.json keras.json
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import textwrap
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "src" / "pullback" / "train" / "io" / "peer_arguments.py"
COMMON = ("self", "name", "trainable", "dtype")
ENDS = ("constraint", "initializer", "regularizer")
HEAD = '''"""The layers of TensorFlow.js and Keras with their arguments; script/peer_arguments.py writes it."""

from __future__ import annotations

ENDS = ("constraint", "initializer", "regularizer")


def _expand(table: dict[str, str]) -> dict[str, str]:
    """Return the arguments by layer, from those by several layers, with three names in place of ``kernel_*``."""
    return {kind: " ".join(map(_spell, names.split())) for kinds, names in table.items() for kind in kinds.split()}


def _spell(name: str) -> str:
    return " ".join(f"{name[:-1]}{end}" for end in ENDS) if name.endswith("_*") else name


'''


def list_keras() -> dict[str, list[str]]:
    """Return the arguments of the layers of the Keras that is installed."""
    layers = importlib.import_module("keras").layers
    found = {}
    for name, kind in vars(layers).items():
        is_alias = kind is getattr(layers, getattr(kind, "__name__", ""), None) and kind.__name__ != name
        if inspect.isclass(kind) and issubclass(kind, layers.Layer) and not is_alias:
            takes = inspect.signature(kind.__init__).parameters.values()
            plain = [p.name for p in takes if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
            more = ["zero_output_for_mask"] if issubclass(kind, layers.RNN) else []  # a keyword of the base class
            found[name] = sorted({*plain, *more} - set(COMMON))
    return found


def shorten(arguments: list[str]) -> str:
    """Return arguments as text, with ``kernel_*`` for the three arguments of a weight that it stands for."""
    whole = {a.removesuffix("_initializer") for a in arguments}
    whole = {weight for weight in whole if {f"{weight}_{end}" for end in ENDS} <= set(arguments)}
    kept = [a for a in arguments if a.rpartition("_")[0] not in whole or a.rpartition("_")[2] not in ENDS]
    return " ".join(sorted([*kept, *(f"{weight}_*" for weight in whole)]))


def format_table(name: str, table: dict[str, list[str]]) -> str:
    """Return a table as Python source; layers with the same arguments are in one row."""
    layers: dict[str, list[str]] = {}
    for kind in sorted(table):
        layers.setdefault(shorten(table[kind]), []).append(kind)
    rows = "\n".join(
        format_row(key, text) for text, all_ in layers.items() for key in textwrap.wrap(" ".join(all_), 105)
    )
    return f"{name}: dict[str, str] = _expand({{\n{rows}\n}})  # fmt: skip\n"


def format_row(key: str, text: str) -> str:
    """Return an entry of a dict, its text in several lines if the whole is long."""
    row = f'    "{key}": "{text}",'
    if len(row) <= 120:
        return row
    lines = ' "\n        "'.join(textwrap.wrap(text, 108, break_on_hyphens=False))
    return f'    "{key}": (\n        "{lines}"\n    ),'


if __name__ == "__main__":
    if sys.argv[1] == "--keras":
        print(json.dumps(list_keras()))
    else:
        tables = [json.loads(Path(path).read_text("utf-8").splitlines()[-1]) for path in sys.argv[1:3]]
        TARGET.write_text(HEAD + "\n".join(map(format_table, ("TFJS", "KERAS"), tables)), "utf-8")
