"""Write the table of docs/scipy.md: what ``pb.scipy`` has. With ``--check``, only say whether it is up to date."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from pullback.names.scipy import FUNCTIONS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scipy.md"
BEGIN, END = "<!-- begin: written by script/scipy_table.py -->\n", "<!-- end -->"


def write_table() -> str:
    """Return the lines of the table."""
    parts = []
    for module, names in FUNCTIONS.items():
        text = ", ".join(f"`{name}`" for name in names)
        parts.append(f"**`{module}`** ({len(names)}):\n" + "\n".join(textwrap.wrap(text, 120)) + "\n")
    return "\n" + "\n".join(parts) + "\n"


def main() -> int:
    """Write the page, or check it."""
    old = PAGE.read_text("utf-8")
    head, rest = old.split(BEGIN)
    new = head + BEGIN + write_table() + END + rest.split(END, 1)[1]
    if "--check" in sys.argv:
        if new != old:
            print("docs/scipy.md is not what names/scipy.py says: run python script/scipy_table.py", file=sys.stderr)
        return int(new != old)
    PAGE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
