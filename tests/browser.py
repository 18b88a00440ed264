"""A real browser for tests of pages: Chromium, without a window, that runs scripts in pages and takes screenshots."""

from __future__ import annotations

import atexit
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from exhaustive import DOWNLOADS

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe",
]  # fmt: skip
TIMEOUT = 300  # seconds, on a machine that does much else
DESKTOP, PHONE = (1280, 800), (390, 844)


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


class Browser:
    """A browser that is driven by the DevTools protocol, over pipes."""

    def __init__(self, chromium: str) -> None:
        its_input, self.output = os.pipe()
        self.input, its_output = os.pipe()

        def connect() -> None:  # the browser reads from 3 and writes to 4
            ends = [copy_above(its_input, 4), copy_above(its_output, 4)]
            for number, end in enumerate(ends, 3):
                os.dup2(end, number)

        self.folder = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            [chromium, *FLAGS, f"--user-data-dir={self.folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=connect,
        )  # fmt: skip
        os.close(its_input)
        os.close(its_output)
        self.numbers, self.rest = count(1), b""
        self.events: list[dict[str, Any]] = []
        atexit.register(self.close)

    def close(self) -> None:
        """End the browser, which ends when nobody writes to it."""
        os.close(self.output)
        os.close(self.input)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self) -> dict[str, Any]:
        """Return the next message."""
        end = monotonic() + TIMEOUT
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.input], [], [], max(0.0, end - monotonic()))
            part = os.read(self.input, 1 << 20) if ready else b""
            assert part, "the browser ended or does not answer"
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return dict(json.loads(message))

    def call(self, method: str, session: str | None = None, **arguments: Any) -> dict[str, Any]:
        """Return the result of a method; events that arrive before it are kept."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": arguments} | ({"sessionId": session} if session else {})
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, (method, answer)
        return dict(answer["result"])

    def wait_for(self, event: str) -> None:
        """Wait until an event is or was reported."""
        while not any(e["method"] == event for e in self.events):
            self.events.append(self.read())


def copy_above(end: int, last: int) -> int:
    """Return a copy of a file descriptor whose number is above ``last``."""
    while (end := os.dup(end)) <= last:
        pass
    return end


@cache
def open_browser() -> Browser:
    """Return the browser of this process; the test is skipped if there is none."""
    if os.name == "nt":
        pytest.skip("drives Chromium over pipes with the numbers 3 and 4, which Windows does not have")
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("needs Chromium (Debian's package chromium)")
    return Browser(chromium)


def run_at(
    address: str, script: str, size: tuple[int, int] = DESKTOP, scheme: str = "light", screenshot: Path | None = None
) -> Any:
    """Return what ``script``, the body of an async function, returns in a page; no error may be on the console.

    ``scheme`` is light or dark.  What the page shows afterwards is written to ``screenshot``, a PNG file.
    """
    browser = open_browser()
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    screen = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.call("Emulation.setDeviceMetricsOverride", session, **screen)
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.call("Emulation.setEmulatedMedia", session, features=[scheme_feature])
    for domain in ("Page", "Runtime", "Log"):
        browser.call(f"{domain}.enable", session)
    browser.events.clear()
    browser.call("Page.navigate", session, url=address)
    browser.wait_for("Page.loadEventFired")
    parameters = {"expression": f"(async () => {{ {script} }})()", "awaitPromise": True, "returnByValue": True}
    answer = browser.call("Runtime.evaluate", session, **parameters)
    if screenshot is not None:
        screenshot.write_bytes(base64.b64decode(browser.call("Page.captureScreenshot", session)["data"]))
    browser.call("Target.closeTarget", targetId=target)
    errors = [e for e in browser.events if is_error(e)]
    assert "exceptionDetails" not in answer, answer
    assert errors == []
    return answer["result"].get("value")


def is_error(event: dict[str, Any]) -> bool:
    """Return whether an event is an error of the page, as the console shows it."""
    details = event.get("params", {})
    return (
        event["method"] == "Runtime.exceptionThrown"
        or (event["method"] == "Runtime.consoleAPICalled" and details["type"] == "error")
        or (event["method"] == "Log.entryAdded" and details["entry"]["level"] == "error")
    )


def run_in_page(page: str, script: str, *, beside: Path | None = None, **how: Any) -> Any:
    """Return what a script returns in a page, as ``run_at`` does; the page is opened as a file.

    ``beside`` is the folder that it is written to, if it needs other files.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(beside or folder, "page.html")
        file.write_text(page, "utf-8")
        return run_at(file.as_uri(), script, **how)
