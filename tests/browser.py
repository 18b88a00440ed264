"""A real browser for tests of pages: Chromium, without a window, that runs a script in a page and gives its answer."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from exhaustive import DOWNLOADS

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=5000",
]  # fmt: skip
HARNESS = """<script>
window.consoleErrors = [];
window.addEventListener("error", e => consoleErrors.push(String(e.message)));
console.error = (...words) => { consoleErrors.push(words.join(" ")); };
window.addEventListener("load", async () => {
  let answer;
  try { answer = await (async () => { %s })(); } catch (error) { consoleErrors.push(String(error)); }
  const pre = document.createElement("pre");
  pre.id = "answer-of-the-test";
  pre.textContent = JSON.stringify({ answer, errors: consoleErrors });
  document.body.append(pre);
});
</script>"""


@cache
def find_chromium() -> str | None:
    """Return the path of Chromium; Debian's package is installed if there is none and tests may download."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None and DOWNLOADS and shutil.which("apt-get") and os.geteuid() == 0:
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
        subprocess.run(["apt-get", "update"], **quiet)
        subprocess.run(["apt-get", "install", "-y", "chromium"], **quiet)
        found = shutil.which("chromium")
    return found


def run_in_page(page: str, script: str, *flags: str, beside: Path | None = None) -> Any:
    """Return what ``script``, the body of an async function, returns in a page; no error may be on the console.

    The page is opened as a file, in the folder ``beside`` if it needs other files.
    """
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("needs Chromium (Debian's package chromium)")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(beside or folder, "page.html")
        file.write_text(page.replace("<head>", f"<head>{HARNESS % script}", 1), "utf-8")
        command = [chromium, *FLAGS, f"--user-data-dir={folder}/profile", *flags, "--dump-dom", file.as_uri()]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    found = re.search(r'<pre id="answer-of-the-test">(.*?)</pre>', shown, re.DOTALL)
    assert found is not None, shown[-2000:]
    result = json.loads(html.unescape(found[1]))
    assert result["errors"] == []
    return result.get("answer")
