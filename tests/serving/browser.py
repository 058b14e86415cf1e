"""Drive a real Chromium by the DevTools protocol, over a pair of pipes: no port is opened, and no library is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from itertools import count

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-domain-reliability",
    "--no-default-browser-check", "--disable-default-apps", "--disable-breakpad", "--metrics-recording-only",
    "--disable-dev-shm-usage", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe",
)  # fmt: skip
# The browser reads commands from file descriptor 3 and writes to 4.
_START = (
    "import os, sys; read, write = map(int, sys.argv[1:3]); os.dup2(read, 100); os.dup2(write, 101); "
    "os.dup2(100, 3); os.dup2(101, 4); os.execv(sys.argv[3], sys.argv[3:])"
)
_PATIENCE = 60  # seconds: long, for a machine that is busy
_PIECE = 1 << 20
KEYS = {  # name -> (code of the key, text that it types)
    "Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), "Home": (36, ""), "End": (35, ""),
    "ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, ""),
}  # fmt: skip
SHIFT = 8


def find_browser():
    """Find a Chromium; None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Browser:
    """A Chromium with one page; what it does is told by its events, which are all kept."""

    def __init__(self, path, profile):
        """Start it. profile: a directory of its own."""
        (read, self._commands), (self._news, write) = os.pipe(), os.pipe()
        words = [sys.executable, "-c", _START, str(read), str(write), path, *FLAGS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            words, pass_fds=(read, write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self._rest, self._numbers, self._session = b"", count(1), None
        self.events = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility", "DOM"):
            self.send(f"{domain}.enable")

    def close(self):
        """End it, and wait until it is gone."""
        self._session = None
        try:
            self.send("Browser.close")
        except (AssertionError, OSError):
            self._process.kill()
        os.close(self._commands)
        os.close(self._news)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def send(self, method, **parameters):
        """Send a command and return its result; AssertionError where the browser refuses it."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data) :]
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = self._next(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _next(self, deadline):
        """Wait for the next message; one that is an event is kept."""
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._news], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._news, _PIECE)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(message)
        if "method" in message:
            self.events.append(message)
        return message

    def told(self, method):
        """List what the events of a name have told so far."""
        return [each["params"] for each in self.events if each["method"] == method]

    def take(self, method, suits=lambda told: True):
        """Wait for an event of a name that suits, forget it, and return what it tells."""
        deadline = time.monotonic() + _PATIENCE
        while not (found := [each for each in self.events if each["method"] == method and suits(each["params"])]):
            self._next(deadline)
        self.events.remove(found[0])
        return found[0]["params"]

    def do(self, script):
        """Run JavaScript, wait for its promise, and return its value; AssertionError where it throws."""
        given = {"expression": script, "awaitPromise": True, "returnByValue": True, "userGesture": True}
        result = self.send("Runtime.evaluate", **given)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, condition):
        """Wait until JavaScript gives a true value, which is returned; AssertionError where it never does."""
        script = f"""new Promise((resolve, reject) => {{
            const timer = setInterval(() => {{ const value = ({condition}); if (value) end(resolve, value); }}, 10);
            const late = setTimeout(() => end(reject, new Error("never true")), {800 * _PATIENCE});
            const end = (settle, value) => {{ clearInterval(timer); clearTimeout(late); settle(value); }};
        }})"""
        return self.do(script)

    def open(self, address):
        """Go to an address, and wait until its document is loaded."""
        self.send("Page.navigate", url=address)
        self.until("document.readyState == 'complete' && location.href != 'about:blank'")

    def type(self, text):
        """Insert text where the focus is."""
        self.send("Input.insertText", text=text)

    def press(self, key, modifiers=0):
        """Press a key of `KEYS`, and let go of it."""
        code, text = KEYS[key]
        given = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.send("Input.dispatchKeyEvent", type="keyDown", **given, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **given)

    def click(self, selector):
        """Click the middle of an element with the mouse."""
        x, y = self.do(f"""(() => {{ const node = document.querySelector({json.dumps(selector)});
            node.scrollIntoView({{block: "center"}}); const box = node.getClientRects()[0];
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def size(self, width, height, dark=False):
        """Give the page a size in pixels, and the system light or dark colours."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path):
        """Write a picture of what is seen of the page, as PNG."""
        self.do("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # it is drawn
        data = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))
