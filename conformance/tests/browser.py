"""A headless Chromium driven over its debugging pipe: just enough for the tests of the HTML page.

Chromium reads commands from descriptor 3 and answers on descriptor 4, JSON messages that end in a
zero byte. That needs no driver program and no package.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HOW_TO_INSTALL = "apt-get install chromium, or set GRIDBUF_CHROMIUM to a Chromium or Chrome binary"
_PATIENCE_S = 60
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """The browser to use, or None where there is none."""
    chosen = os.environ.get("GRIDBUF_CHROMIUM")
    return chosen or next(filter(None, map(shutil.which, _NAMES)), None)


class Page:
    """One open page: runs scripts in it, changes its size, and keeps its network requests."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, os.fdopen(answers, "rb")
        self._unread = b""
        self._last_id = 0
        self._loaded = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its result; RuntimeError with the browser's
        complaint.
        """
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def load(self, path: Path) -> None:
        """Opens a local file and waits until it is complete."""
        self.requests.clear()
        self.errors.clear()
        loaded = self._loaded
        self.call("Page.navigate", url=path.as_uri())
        self._wait_for_load(loaded)

    def follow(self, script: str) -> None:
        """Runs a script that opens another page, and waits until that page is complete."""
        loaded = self._loaded
        self.run(script)
        self._wait_for_load(loaded)

    def _wait_for_load(self, loaded: int) -> None:
        while self._loaded == loaded:
            self._note(self._read())

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        result = self.call(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def resize(self, width: int, height: int = 900) -> None:
        """Sets the window's inner size in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Makes the system prefer the "light" or the "dark" scheme."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def type_key(self, key: str) -> None:
        """Presses and releases one key that is its own text."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key)

    def press(self, key: str) -> None:
        """Presses and releases one key that is not a text, such as "ArrowDown"."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def screenshot(self, path: Path) -> None:
        """Writes the whole page as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            if not select.select([self._answers], [], [], _PATIENCE_S)[0]:
                raise TimeoutError(f"the browser said nothing for {_PATIENCE_S} s")
            chunk = os.read(self._answers.fileno(), 1 << 16)
            if not chunk:
                raise RuntimeError("the browser ended")
            self._unread += chunk
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        """Keeps the values that tests ask for later."""
        parameters = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.errors.append(str(parameters["args"]))
        elif event.get("method") == "Page.loadEventFired":
            self._loaded += 1


@contextmanager
def open_page(chromium: str) -> Iterator[Page]:
    """A browser with one page; ends it in the end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        command_read, command_write = os.pipe()
        answer_read, answer_write = os.pipe()
        # bash moves them to 3 and 4, so neither may already be one of these.
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (command_read, answer_write)]
        for fd in (command_read, answer_write):
            os.close(fd)
        script = f'exec "$0" "$@" 3<&{theirs[0]} 4>&{theirs[1]}'
        options = ["--headless", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars"]
        options += ["--no-sandbox"] if os.geteuid() == 0 else []
        process = subprocess.Popen(
            ["bash", "-c", script, chromium, *options, f"--user-data-dir={home}/profile"],
            pass_fds=theirs,
            env={**os.environ, "HOME": home},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for fd in theirs:
            os.close(fd)
        try:
            yield Page(command_write, answer_read)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its helpers too: they write into its profile
            process.wait(timeout=20)
            os.close(command_write)
