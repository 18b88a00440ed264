"""``python -m pullback``: the ``pullback`` command, where the folder of scripts is not on the PATH."""

from __future__ import annotations

import sys

from pullback.command import main

if __name__ == "__main__":
    sys.exit(main())
