"""A headless Chromium over the WebDriver protocol, with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
# No name resolves: a page that asks for anything shows it, and nothing leaves the machine.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)

needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium here: apt-get install chromium chromium-driver"
)


def axe_source() -> str:
    """axe-core's script; the test is skipped, and says so, where npm has not brought it."""
    for path in (Path(os.environ.get("STACKCTL_AXE", "/nowhere")), ROOT / "node_modules/axe-core/axe.min.js"):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    pytest.skip("no axe-core here: npm install axe-core, or STACKCTL_AXE=/path/to/axe.min.js")


class Browser:
    """One session."""

    def __init__(self, address: str, folder: Path, *flags: str) -> None:
        self._address = address
        options = {
            "binary": CHROMIUM,
            "args": [*FLAGS, f"--user-data-dir={folder / 'profile'}", *flags],
            "prefs": {"download.default_directory": str(folder / "downloads")},
        }
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self._session = ""
        self._session = (
            "/session/" + self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        )

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(
            self._address + self._session + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.load(answer)["value"]

    def open(self, path: Path) -> None:
        """Open a file."""
        self._call("POST", "/url", {"url": path.resolve().as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script's body in the page and give back what it returns (a promise is waited for)."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def keys(self, selector: str, text: str) -> None:
        """Type into an element (a file input takes a path)."""
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{next(iter(element.values()))}/value", {"text": text})

    def click(self, selector: str) -> None:
        """Click an element."""
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{next(iter(element.values()))}/click")

    def size(self, width: int, height: int) -> None:
        """The size of the page, as a device has it."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def devtools(self, command: str, **parameters: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def screenshot(self, path: Path) -> None:
        """What is seen now, as a PNG."""
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def pages(self) -> bytes:
        """The page as A4 PDF."""
        return base64.b64decode(self.devtools("Page.printToPDF", preferCSSPageSize=True)["data"])

    def complaints(self) -> list[str]:
        """What the console has said since the last look."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def quit(self) -> None:
        """End the session and its processes."""
        self._call("DELETE", "")


@contextmanager
def browser(*flags: str) -> Iterator[Browser]:
    """A browser with an empty profile, ended with its driver."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="stackctl-browser-", ignore_cleanup_errors=True) as name:
        driver = subprocess.Popen([str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait(port)
            (Path(name) / "downloads").mkdir()
            session = Browser(f"http://127.0.0.1:{port}", Path(name), *flags)
            session.downloads = Path(name) / "downloads"  # type: ignore[attr-defined]
            try:
                yield session
            finally:
                session.quit()
        finally:
            driver.terminate()
            driver.wait(10)


def _wait(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("chromedriver does not listen")
