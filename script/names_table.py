"""Write docs/coming-from.md from the table of names.  With ``--check``, only say whether it is up to date."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from pullback.names.table import ALIASES, FUNCTIONS, INSTANCES, KEYWORDS, METHODS, UNNEEDED_KEYWORDS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "coming-from.md"
PREFIX = {"TensorFlow.js": "tf.", "TensorFlow and Keras": "tf.", "PyTorch": "torch.", "JAX": "jax.", "autograd": ""}
OURS = "pb|np|x|model|optimizer|tape|dataset"
CODE = re.compile(rf"(?<![\w'`.])((?:{OURS})\.[\w.]*\w(?:\([^()]*\))*(?:\[[^]]*\])?)")

HEAD = """# Coming from TensorFlow.js, TensorFlow, PyTorch, JAX or autograd

This page is written by `script/names_table.py` from the table by which the library answers; a test fails when it is out
of date.

A name that is not here is answered with what it is here. So are keyword arguments and methods, and misspelt names.

```python
>>> import numpy as np
>>> import pullback as pb
>>> pb.jit
Traceback (most recent call last):
...
pullback.errors.MissingNameError: module 'pullback' has no attribute 'jit'. pb.jit is pb.compile.
>>> pb.train.adam(lr=0.1)
Traceback (most recent call last):
...
pullback.errors.ArgumentError: adam() got an unexpected keyword argument 'lr'. It is 'learning_rate' here.
>>> pb.layers.dense(unit=3)
Traceback (most recent call last):
...
pullback.errors.ArgumentError: Dense() got an unexpected keyword argument 'unit'. Did you mean 'units'?
>>> pb.tensor([1.0]).detach()
Traceback (most recent call last):
...
pullback.errors.MissingNameError: 'Tensor' object has no attribute 'detach'. x.detach is pb.stop_gradient(x).

```

Spellings that differ only in capitals and underscores need no row below: `pb.logSumExp` is `pb.log_sum_exp`,
`pb.layers.LSTM` is `pb.layers.lstm`, `inputShape=` is `input_shape=`. A dict of settings, as TensorFlow.js takes it, is
keyword arguments here. NumPy's functions are NumPy's: `np.interp(x, …)`, not `pb.interp`.

## Notebooks

A cell can be run twice. The newest variable has the name that it is given; only where names must tell variables apart
(the dict of `variable_grads`, files) are two living ones of one name an error, which says where each was made. A
registered gradient, an op and a layer class that are defined again take the place of the former.

```python
>>> for _ in range(2):  # as a cell that is run twice
...     w = pb.variable([1.0, 2.0], name="w")
...     loss = lambda: (w * w).sum()
>>> pb.variable_grads(loss).grads["w"]
Tensor([2., 4.], dtype=float32)

```

`w -= …` assigns to the variable, as `w.assign_sub` does, whatever other name it goes by.

```python
>>> w -= 0.5 * pb.variable_grads(loss).grads["w"]
>>> w
Variable([0., 0.], dtype=float32, name='w')

```
"""


def code(text: str) -> str:
    """Return the names in an answer as code."""
    return CODE.sub(r"`\1`", text).replace("|", "\\|")


def table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    """Return names and what they are here; those that are the same share a row."""
    same: dict[str, list[str]] = {}
    for name, here in rows:
        same.setdefault(here, []).append(f"`{name}`")
    lines = [f"| {', '.join(names)} | {here} |" for here, names in same.items()]
    return "\n".join([f"| {head[0]} | {head[1]} |", "|---|---|", *lines])


def page() -> str:
    parts = [
        HEAD,
        "## The same under both names\n",
        table(("there", "here"), ((name, f"`pb.{here}`") for name, here in ALIASES.items())),
    ]
    for library, names in FUNCTIONS.items():
        rows = ((f"pb.{n}" if "." in n else PREFIX[library] + n, code(a)) for n, a in names.items())
        parts += [f"\n## {library}\n", table(("there", "here"), rows)]
    parts.append("\n## Methods\n")
    for kind, names in METHODS.items():
        x = INSTANCES[kind]
        parts += [table((f"`{kind}`", "here"), ((f"{x}.{n}", code(a)) for n, a in names.items())), ""]
    keywords = [(f"{n}=", ", ".join(f"`{a}=`" for a in here)) for n, here in KEYWORDS.items()]
    keywords += [(f"{n}=", code(a)) for n, a in UNNEEDED_KEYWORDS.items()]
    parts += ["## Keyword arguments\n", "The first that the function takes.\n", table(("there", "here"), keywords), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text, "utf-8")
    elif not PAGE.exists() or PAGE.read_text("utf-8") != text:
        sys.exit("docs/coming-from.md is not what the table of names says: run python script/names_table.py")
