"""Takes the pictures of the dashboard in the documents: pictures.py [FOLDER]

- dashboard-dark.png: the flowgraph of `demo --web`, 1440 x 1010, in dark colours.
- dashboard-light.png: `rx` of an emulated E320 at 98.1 MHz and 2 MS/s while some packets are lost, 1440 x 770, in light ones.

Take them on a quiet machine: they show loads and latencies.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from conftest import PROGRAM, ROOT, Radio, Server, end, eventually, free_port
from playwright.sync_api import sync_playwright

CENTRE_HZ = 98.1e6
RATE_HZ = 2e6


def answers(port):
    """Whether a dashboard answers."""
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/api/hello", timeout=5).read()
    except OSError:
        return None


def shoot(browser, url, scheme, height, path, wait_s, before=None):
    """Opens the page, waits, and takes a picture."""
    context = browser.new_context(viewport={"width": 1440, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.goto(url)
    eventually("the page is live", lambda: page.get_attribute("#link", "data-state") == "live")
    page.wait_for_timeout(1000 * wait_s)
    if before:
        before(page)
    page.screenshot(path=str(path))
    context.close()
    print(path)


def flowgraph(page):
    """Scrolls to the flowgraph."""
    page.wait_for_selector("#flow-picture svg")
    page.evaluate("""() => {
      const bar = document.querySelector(".bar").offsetHeight;
      scrollTo(0, document.getElementById("flow").getBoundingClientRect().top + scrollY - bar - 12);
    }""")
    page.wait_for_timeout(600)


def demo(browser, folder, pictures):
    """The demo, from its fifth second on."""
    port = free_port()
    log = folder / "demo.log"
    with log.open("wb") as file:
        process = subprocess.Popen([PROGRAM, "demo", "--web", str(port)], cwd=folder, stdout=file, stderr=file)
    try:
        eventually("the demo's dashboard answers", lambda: answers(port))
        shoot(browser, f"http://127.0.0.1:{port}", "dark", 1010, pictures / "dashboard-dark.png", 5, flowgraph)
    finally:
        end(process)


def reception(browser, folder, pictures):
    """A reception with some gaps."""
    radio = Radio(folder)
    server = Server(radio, folder)
    try:
        server.start(centre_hz=CENTRE_HZ, rate_hz=RATE_HZ, control=())

        def lose(page):
            for words in (["to_host", "count=120"], ["to_host", "count=400"], ["to_host", "count=60"]):
                radio.fault("add", "lose", words[0], "data", words[1])
                page.wait_for_timeout(1700)
        shoot(browser, server.url, "light", 770, pictures / "dashboard-light.png", 5, lose)
    finally:
        server.stop()
        radio.process.terminate()
        radio.process.wait()


def main():
    pictures = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/pictures"
    load = os.getloadavg()[0]
    if load > 1:
        print(f"note: the load of this machine is {load:.1f}, and the pictures show that", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        program = os.environ.get("CHROMIUM") or shutil.which("chromium")
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=program, args=flags)
        demo(browser, pathlib.Path(folder), pictures)
        reception(browser, pathlib.Path(folder), pictures)
        browser.close()


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"{time.monotonic() - began:.0f} s")
