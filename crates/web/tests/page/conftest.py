"""What the tests of the page share: an emulated radio, `millstream rx --web` that receives from it, and Debian's Chromium."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
PROGRAM = pathlib.Path(os.environ.get("MILLSTREAM", ROOT / "target/debug/millstream"))
# A loaded machine is slow, but everything here happens in the end.
PATIENCE_S = 60
# The default scene of an emulated E320 has a carrier here.
CARRIER_HZ = 1e9
RATE_HZ = 1e6


def eventually(what, check, patience_s=PATIENCE_S):
    """Waits until `check` returns something true, and returns that."""
    end = time.monotonic() + patience_s
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience_s} s: {what}; last seen: {found!r}")
        time.sleep(0.1)


def free_port():
    """A TCP port of this machine that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def end(process):
    """Ends a command as Ctrl-C does."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Radio:
    """An emulated radio at an address of its own: an E320, or what the arguments say."""

    def __init__(self, folder, *args):
        self.address = f"127.{random.randint(64, 250)}.{random.randint(1, 250)}.{random.randint(2, 250)}"
        self.port = free_port()
        args = args or ("--device", "e320")
        command = [PROGRAM, "sim", "radio", *args, "--addr", self.address, "--control", str(self.port)]
        log = folder / "radio.log"
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file)
        eventually("the radio is ready", lambda: "ready: " in log.read_text())

    def fault(self, *words):
        """Injects a fault, as `sim fault` does."""
        subprocess.run([PROGRAM, "sim", "fault", str(self.port), *words], check=True, stdout=subprocess.DEVNULL)


class Server:
    """`millstream rx --web`; it can be ended and started again at the same port."""

    def __init__(self, radio, folder):
        self.radio, self.port, self.log = radio, free_port(), folder / "rx.log"
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self, centre_hz=CARRIER_HZ - 100e3, rate_hz=RATE_HZ, control=("--web-control",), out=("-", "--format", "sc16")):
        tuned = () if centre_hz is None else ("--freq", str(centre_hz), "--gain", "40")
        command = [PROGRAM, "rx", "--args", f"addr={self.radio.address}", "--rate", str(rate_hz), *tuned,
                   "--out", *out, "--web", str(self.port), *control]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        eventually("the server answers", self.answers)

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"rx ended: {self.log.read_text()}")
        with contextlib.suppress(OSError):
            return self.get("hello")
        return None

    def get(self, what):
        """A document of `/api`."""
        with urllib.request.urlopen(f"{self.url}/api/{what}", timeout=10) as answer:
            return json.load(answer)

    def stop(self):
        if self.process:
            end(self.process)


@pytest.fixture(scope="session")
def radio(tmp_path_factory):
    one = Radio(tmp_path_factory.mktemp("radio"))
    yield one
    end(one.process)


@pytest.fixture(scope="session")
def server(radio, tmp_path_factory):
    one = Server(radio, tmp_path_factory.mktemp("server"))
    one.start()
    yield one
    one.stop()


@pytest.fixture(scope="session")
def chromium():
    """Debian's Chromium under Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright for Python here (PyPI: playwright)")
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not program:
        pytest.skip("no Chromium here (Debian package chromium)")
    with playwright.sync_playwright() as driver:
        # Root may not use Chromium's sandbox; the page comes from this machine.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=program, args=[*flags, "--enable-precise-memory-info"])
        yield browser
        browser.close()


class Page:
    """The page in a window, and what the tests read from it."""

    def __init__(self, page, url):
        self.page, self.url, self.errors = page, url, []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        # Binary frames that arrived: lines and symbols.
        self.frames = 0
        page.on("websocket", lambda socket: socket.on("framereceived", self.note_frame))
        page.goto(url)

    def note_frame(self, payload):
        self.frames += isinstance(payload, bytes)

    def state(self):
        return self.page.get_attribute("#link", "data-state")

    def frames_in(self, seconds):
        """How many binary frames arrive in a time."""
        before = self.frames
        self.page.wait_for_timeout(1000 * seconds)
        return self.frames - before

    def lines(self):
        """Waits until the spectrum has some lines."""
        eventually("lines arrive", lambda: self.page.get_attribute("#stack", "data-from-hz"))

    def scope(self):
        """The numbers that the spectrum says of itself."""
        return {name: float(value) for name, value in self.page.evaluate("({...document.getElementById('stack').dataset})").items()}

    def brightest(self):
        """The frequency of the brightest column of the newest part of the waterfall, and the width of a column."""
        found = self.page.evaluate("""() => {
          const canvas = document.getElementById("waterfall"), said = document.getElementById("stack").dataset;
          const left = Math.round(said.plotLeft), width = Math.round(said.plotWidth), rows = [4, 9, 14, 24, 29, 34, 44];
          const pixels = canvas.getContext("2d").getImageData(left, 0, width, 48).data;
          let best = -1, first = 0, last = 0;
          for (let x = 0; x < width; x += 1) {
            // The median of some rows: a gap's bar or label covers only a few.
            const light = rows.map((y) => 4 * (y * width + x)).map((at) => 0.3 * pixels[at] + 0.6 * pixels[at + 1] + 0.1 * pixels[at + 2]);
            const middle = light.sort((a, b) => a - b)[rows.length >> 1];
            // The colours end at some level: a strong carrier has that colour in the bins beside its own, too.
            if (middle > best) { best = middle; first = last = x; } else if (middle === best && last === x - 1) last = x;
          }
          return { column: (first + last) / 2, width, best, from: Number(said.fromHz), to: Number(said.toHz), bins: Number(said.bins) };
        }""")
        wide = (found["to"] - found["from"]) / found["width"]
        return found["from"] + (found["column"] + 0.5) * wide, wide, found


@pytest.fixture
def open_page(chromium, server):
    """Opens the page; at the end no error may stand in the console."""
    opened, contexts = [], []

    def open_one(width=1440, height=900, scheme="dark", touch=False, allowed_errors=()):
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=touch)
        contexts.append(context)
        page = Page(context.new_page(), server.url)
        page.allowed = allowed_errors
        opened.append(page)
        eventually("the page is live", lambda: page.state() == "live")
        return page

    yield open_one
    for page in opened:
        others = [error for error in page.errors if not any(allowed in error for allowed in page.allowed)]
        assert not others, others
    for context in contexts:
        context.close()
