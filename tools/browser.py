"""A headless browser, driven through a pipe with the DevTools protocol. Requires only Debian's chromium."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_browser():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One page. `errors` collects exceptions, console errors and failed loads."""

    def __init__(self, width=1280, height=860):
        self.folder = tempfile.mkdtemp(prefix="tenon-browser-")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        command = [find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
                   f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "--remote-debugging-pipe"]

        def place_pipes():  # the browser reads commands from 3 and writes answers to 4
            first, second = os.dup(to_read), os.dup(to_write)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=place_pipes, close_fds=False)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.next_id = 0
        self.errors = []
        self.session = None
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def close(self):
        try:
            self.session = None
            self.send("Browser.close", {})
            self.process.wait(timeout=10)
        except Exception:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
        os.close(self.write_end)
        shutil.rmtree(self.folder, ignore_errors=True)

    def send(self, method, params):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        return self.next_id

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.read_end, 1 << 20)
            if not part:
                raise ConnectionError("the browser is gone")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        self.note(message)
        return message

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])

    def call(self, method, params=None, limit_s=60):
        number = self.send(method, params or {})
        deadline = time.monotonic() + limit_s
        while True:
            message = self.receive(deadline)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def ask(self, expression):
        """Returns the value of an expression in the page; awaits promises."""
        answer = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def open(self, path):
        """Opens a page and returns the seconds until it is drawn."""
        begin = time.monotonic()
        self.call("Page.navigate", {"url": "file://" + os.path.abspath(path)})
        deadline = begin + 60
        while not self.ask("document.readyState === 'complete' && !!window.tenon"):
            if time.monotonic() > deadline:
                raise TimeoutError("the page does not open")
            time.sleep(0.02)
        self.settle()
        return time.monotonic() - begin

    def settle(self):
        """Waits until pending changes are drawn."""
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, **text})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", "key": key})
        self.settle()

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            pressed = kind == "mousePressed"
            self.call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "none" if kind == "mouseMoved" else "left",
                                                   "buttons": 1 if pressed else 0, "clickCount": 0 if kind == "mouseMoved" else 1})
        self.settle()

    def type_text(self, text):
        self.call("Input.insertText", {"text": text})
        self.settle()

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", {"format": "png"})["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))
