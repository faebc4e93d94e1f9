"""Headless Chromium, driven over the DevTools protocol through two pipes, which needs no WebSocket client."""

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe",
]  # fmt: skip


START = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for wanted, pipe in zip((3, 4), pipes):
    os.dup2(pipe, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Starts the browser with the pipes as the descriptors that it expects."""


def find_browser():
    """Return the path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A browser with one page. Exceptions of its scripts, and what it writes to the console, are in ``complaints``."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="browser-")
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()
        command = [sys.executable, "-c", START, str(to_read), str(to_write), find_browser(), *FLAGS]
        self.process = subprocess.Popen(
            [*command, f"--user-data-dir={self.folder}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self.pending = b""
        self.number = 0
        self.session = None
        self.complaints = []
        (page,) = [target for target in self.command("Target.getTargets")["targetInfos"] if target["type"] == "page"]
        attached = self.command("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session = attached["sessionId"]
        self.command("Emulation.setScrollbarsHidden", hidden=True)
        for domain in ("Page", "Runtime", "Log", "Performance"):
            self.command(f"{domain}.enable")

    def command(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            if answer.get("method") in {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}:
                self.complaints.append(answer["params"])

    def receive(self):
        while b"\0" not in self.pending:
            data = os.read(self.from_browser, 1 << 16)
            assert data, "the browser has ended"
            self.pending += data
        message, _, self.pending = self.pending.partition(b"\0")
        return json.loads(message)

    def open(self, url):
        self.command("Page.navigate", url=url)

    def evaluate(self, expression):
        """Return the value of a JavaScript expression; a promise is awaited."""
        result = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_until(self, condition):
        """Wait until a JavaScript condition is true; it is checked whenever the document changes."""
        self.evaluate(
            "new Promise(done => { const check = () => { let is; try { is = " + condition + "; } catch { is = false; }"
            " if (is) { watcher.disconnect(); done(true); } return is; };"
            " const watcher = new MutationObserver(check);"
            " watcher.observe(document, {childList: true, subtree: true, characterData: true, attributes: true});"
            " check(); })"
        )

    def screenshot(self, path, width, *, dark=False):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        image = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(image["data"]))

    def close(self):
        with contextlib.suppress(OSError, AssertionError):
            self.session = None
            self.command("Browser.close")
        os.close(self.to_browser)
        os.close(self.from_browser)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
