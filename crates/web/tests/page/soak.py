"""Watches the memory of a dashboard's server and of its page for a long time: soak.py [SECONDS [CLIENTS]]

An emulated radio loses a packet from time to time; `millstream rx --web` receives it, and the page shows it in Chromium. A
line every so often has the resident memory of the server, the page's heap after a collection, its nodes, and the share of a
core of the server. More clients are plain ones, with 30 lines a second each.

After the histories of the page are full, the medians of the first and of the last quarter are compared: it ends 1 if a memory
has grown by more than 10 MB, or if a client was lost.
"""

import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

from clients import Client
from conftest import Page, Radio, Server, eventually
from playwright.sync_api import sync_playwright

# The histories of the page are full, and the caches of the server warm.
WARM_S = 70
GROWTH_MB = 10


def resident_mb(pid):
    """Resident memory of a process."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def pause(page, seconds):
    """Waits; the page is a live one meanwhile."""
    page.page.wait_for_timeout(1000 * seconds)


class Watch:
    """The samples of a run."""

    def __init__(self, page, server, clients):
        self.page, self.server, self.clients = page, server, clients
        self.tool = page.page.context.new_cdp_session(page.page)
        self.tool.send("Performance.enable")
        self.began, self.before, self.rows = time.monotonic(), None, []

    def take(self):
        """Takes and prints one sample."""
        self.tool.send("HeapProfiler.collectGarbage")
        heap = self.page.page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        metrics = {one["name"]: one["value"] for one in self.tool.send("Performance.getMetrics")["metrics"]}
        now = time.monotonic()
        if self.server.process.poll() is not None:
            sys.exit(f"rx ended: {self.server.log.read_text()[-2000:]}")
        status = self.server.get("status")
        cpu = status["server"]["cpu_s"]
        share = 0 if self.before is None else (cpu - self.before[1]) / (now - self.before[0])
        self.before = (now, cpu)
        lost = sum(sum(ledger["lost"].values()) for ledger in status["ledgers"])
        row = {"at": now - self.began, "server": resident_mb(self.server.process.pid), "page": heap}
        self.rows.append(row)
        lines = sum(one.lines for one in self.clients)
        print(f"{row['at']:7.0f} s  server {row['server']:7.1f} MB  page {heap:6.2f} MB, {metrics['Nodes']:.0f} nodes, "
              f"{self.page.frames} frames  dashboard {100 * share:.1f} % of a core, {status['server']['clients']} clients, "
              f"{lines} lines to the plain ones  {lost} samples lost", flush=True)
        gone = [one.over for one in self.clients if one.over]
        if self.page.state() != "live" or gone:
            sys.exit(f"a client was lost: the page is {self.page.state()}; {gone}")

    def growth(self, name):
        """The median of the last quarter less that of the first one, MB."""
        values = [row[name] for row in self.rows if row["at"] > WARM_S]
        quarter = max(1, len(values) // 4)
        return statistics.median(values[-quarter:]) - statistics.median(values[:quarter])


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3600
    plain = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if seconds < 2 * WARM_S:
        sys.exit(f"give at least {2 * WARM_S} s: the histories of the page are full after {WARM_S} s")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        radio = Radio(folder)
        server = Server(radio, folder)
        clients = []
        try:
            server.start()
            radio.fault("add", "lose", "to_host", "data", "p=0.0005")
            with sync_playwright() as driver:
                program = os.environ.get("CHROMIUM") or shutil.which("chromium")
                flags = ["--no-sandbox"] if os.geteuid() == 0 else []
                browser = driver.chromium.launch(executable_path=program, args=[*flags, "--enable-precise-memory-info"])
                page = Page(browser.new_page(viewport={"width": 1440, "height": 900}), server.url)
                eventually("the page is live", lambda: page.state() == "live")
                clients = [Client(server.port) for _ in range(plain)]
                for one in clients:
                    one.start()
                watch = Watch(page, server, clients)
                while time.monotonic() - watch.began < seconds:
                    watch.take()
                    pause(page, min(60, seconds / 40))
                watch.take()
                errors = page.errors
                browser.close()
        finally:
            for one in clients:
                one.stop()
            server.stop()
            radio.process.terminate()
            radio.process.wait()
    grown = {name: watch.growth(name) for name in ("server", "page")}
    print(f"after the first {WARM_S} s: server {grown['server']:+.2f} MB, page {grown['page']:+.2f} MB in {seconds:.0f} s")
    if errors:
        sys.exit(f"the page reported errors: {errors}")
    if max(grown.values()) > GROWTH_MB:
        sys.exit(f"a memory has grown by more than {GROWTH_MB} MB")


if __name__ == "__main__":
    main()
