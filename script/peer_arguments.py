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
HEAD = '''"""The layers of TensorFlow.js and Keras with their arguments; script/peer_arguments.py writes it."""

from __future__ import annotations

__all__ = ["KERAS", "TFJS"]

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


def format_table(name: str, table: dict[str, list[str]]) -> str:
    """Return a table as Python source."""
    rows = []
    for kind in sorted(table):
        lines = textwrap.wrap(" ".join(table[kind]), 90, break_on_hyphens=False) or [""]
        texts = [line + (" " if i + 1 < len(lines) else "") for i, line in enumerate(lines)]
        body = "\n".join(f'        "{text}"' for text in texts)
        rows.append(f'    "{kind}": "{texts[0]}",' if len(texts) == 1 else f'    "{kind}": (\n{body}\n    ),')
    return f"{name}: dict[str, str] = {{\n" + "\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    if sys.argv[1] == "--keras":
        print(json.dumps(list_keras()))
    else:
        tables = [json.loads(Path(path).read_text("utf-8").splitlines()[-1]) for path in sys.argv[1:3]]
        TARGET.write_text(HEAD + "\n".join(map(format_table, ("TFJS", "KERAS"), tables)), "utf-8")
