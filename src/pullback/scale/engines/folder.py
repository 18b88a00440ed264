"""The folder of an engine's files on this machine, which is removed when the program ends, also when it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Another process removes the folder, as soon as the program closes its input or dies; what Ray started needs seconds.
REMOVER = """
import os, shutil, sys, time
sys.stdin.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.3)
"""


class Folder:
    """A new folder; its name says which process made it, and is short, because the paths of sockets must be."""

    def __init__(self, engine: str) -> None:
        root = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
        self.path = tempfile.mkdtemp(prefix=f"pb-{engine}-{os.getpid()}-", dir=root)
        self.remover = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", REMOVER, self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard is not for it
        )

    def name_crash_file(self, worker: object) -> str:
        """Return the path of the file that a crash of a worker is written to."""
        return os.path.join(self.path, f"crash{worker}")

    def read_crash(self, worker: object = "*") -> str:
        """Return the traceback of the last crash of a worker, or of all of them; nothing if there is none."""
        paths = Path(self.path).glob(f"crash{worker}")
        texts = [(path.stat().st_mtime, path.read_text().strip()) for path in paths]
        return max(((time, text) for time, text in texts if text), default=(0.0, ""))[1]

    def remove(self) -> None:
        """Remove the folder."""
        self.remover.communicate()
