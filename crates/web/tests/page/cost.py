"""Measures what the dashboard costs, with the goal beside each figure: cost.py [SECONDS]

An emulated radio and `millstream rx --web` on this machine. SECONDS is the length of each measurement (10).

- The processor time of the server's thread at 25 MS/s, with 0, 1 and 20 clients that take 30 lines of 4096 bins a second;
  what a client receives; how long `/metrics` takes.
- Chromium's page: from samples to pixels, and the processor time of its main thread.
- 2 x 250 MS/s, or the highest rate below that at which this machine loses nothing: alone, with a client, and with the page.
  The browser draws without a graphics card on the CPUs of the stream, so there it runs in the idle class (a nice value
  does not do: Chromium raises the priority of some of its threads). In practice it runs on another machine.

It ends 1 if a goal is missed. Radio, reception and browser share the CPUs of this machine, so use a quiet one.
"""

import json
import os
import pathlib
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from clients import Client
from conftest import PROGRAM, Page, Radio, Server, end, eventually, free_port
from playwright.sync_api import sync_playwright

RATE_HZ, BINS, LINES_PER_S = 25e6, 4096, 30
PAIR_HZ = [250e6, 200e6, 150e6, 100e6, 75e6, 50e6, 25e6, 10e6]
missed = []


def say(what, figure, goal, good):
    """Prints one line: a figure with its goal."""
    print(f"{what:<58} {figure:>22}   goal: {goal:<22} {'reached' if good else 'MISSED'}", flush=True)
    if not good:
        missed.append(what)


def server_share(server, seconds):
    """The share of a core that the server's thread used."""
    def used():
        return time.monotonic(), server.get("status")["server"]["cpu_s"]
    (began, before), _ = used(), time.sleep(seconds)
    ended, after = used()
    return (after - before) / (ended - began)


def with_clients(server, number, seconds):
    """The share of a core with so many clients; of one, the least lines and the most bytes in a second; bytes of a line."""
    clients = [Client(server.port, LINES_PER_S, BINS) for _ in range(number)]
    for one in clients:
        one.start()
    try:
        eventually("each client has lines", lambda: all(one.lines > 10 for one in clients))
        began, before = time.monotonic(), [(one.lines, one.bytes) for one in clients]
        share = server_share(server, seconds)
        took = time.monotonic() - began
        lines = [(one.lines - start[0]) / took for one, start in zip(clients, before)]
        taken = [(one.bytes - start[1]) / took for one, start in zip(clients, before)]
        gone = [one.over for one in clients if one.over]
        if gone:
            sys.exit(f"a client was lost: {gone}")
        return share, min(lines), max(taken), clients[0].line_bytes / clients[0].lines
    finally:
        for one in clients:
            one.stop()
        eventually("the clients have gone", lambda: server.get("status")["server"]["clients"] == 0)


def lost(server):
    """Lost samples so far."""
    return sum(sum(ledger["lost"].values()) for ledger in server.get("status")["ledgers"])


def metrics_ms(server):
    """The median time of a scrape."""
    times = []
    for _ in range(50):
        began = time.perf_counter()
        urllib.request.urlopen(f"{server.url}/metrics", timeout=10).read()
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times)


def open_page(browser, url):
    """The page, live and with lines."""
    page = Page(browser.new_page(viewport={"width": 1920, "height": 1080}), url)
    eventually("the page is live", lambda: page.state() == "live")
    page.lines()
    return page


def of_the_server(server, seconds):
    """What the server costs at 25 MS/s."""
    # The requests that read the figure are in it.
    nobody = server_share(server, seconds)
    say("server, no client", f"{100 * nobody:.2f} % of a core", "0 % (below 0.1 %)", nobody < 0.001)
    one, lines, taken, line = with_clients(server, 1, seconds)
    what = f"{RATE_HZ / 1e6:.0f} MS/s, {BINS} bins, {LINES_PER_S} lines/s"
    say(f"server, 1 client, {what}", f"{100 * one:.2f} % of a core", "below 2 %", one < 0.02)
    say("lines of that client", f"{lines:.1f} 1/s", f"{LINES_PER_S} 1/s", lines > 0.95 * LINES_PER_S)
    what = f"bytes of {LINES_PER_S} lines (with statuses {taken / 1e3:.0f} kB/s)"
    say(what, f"{LINES_PER_S * line / 1e3:.1f} kB/s", "125 kB/s", round(LINES_PER_S * line / 1e3) <= 125)
    twenty, lines, _, _ = with_clients(server, 20, seconds)
    say("server, 20 clients: more than 1 client", f"{100 * (twenty - one):.2f} % of a core", "below 5 %", twenty - one < 0.05)
    say("lines of the slowest of them", f"{lines:.1f} 1/s", f"{LINES_PER_S} 1/s", lines > 0.95 * LINES_PER_S)
    scrape = metrics_ms(server)
    say("/metrics, median of 50 with connection", f"{scrape:.2f} ms", "below 1 ms", scrape < 1)


def of_the_page(browser, server, seconds):
    """What the page costs, and how late it is."""
    page = open_page(browser, server.url)
    tool = page.page.context.new_cdp_session(page.page)
    tool.send("Performance.enable")

    def busy():
        metrics = {one["name"]: one["value"] for one in tool.send("Performance.getMetrics")["metrics"]}
        return time.monotonic(), metrics["TaskDuration"]
    page.page.wait_for_timeout(5000)
    began, before = busy()
    page.page.wait_for_timeout(1000 * seconds)
    ended, after = busy()
    delay = page.scope()["delayMs"]
    say("samples to pixels, p95 of 120 lines", f"{delay:.0f} ms", "below 150 ms", delay < 150)
    share = (after - before) / (ended - began)
    say("main thread of the page, 1920 x 1080", f"{100 * share:.1f} % of a core", "below 25 %", share < 0.25)
    if page.errors:
        sys.exit(f"the page reported errors: {page.errors}")
    page.page.close()


def pair(radio, rate_hz, seconds, browser=None, client=False):
    """Lost samples and samples of two channels at this rate, with the page or a client if that is wanted."""
    port = free_port()
    command = [PROGRAM, "rx", "--json", "--args", f"addr={radio.address}", "--rate", str(rate_hz), "--channel", "0,1", "--out",
               "/dev/null", "--web", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    page = other = None

    def answers():
        if process.poll() is not None:
            raise AssertionError(f"rx ended early: {process.stdout.read()[-400:]}")
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/api/hello", timeout=10).read()
        except OSError:
            return None
    try:
        eventually("the server answers", answers)
        if browser:
            page = open_page(browser, f"http://127.0.0.1:{port}")
        if client:
            other = Client(port, LINES_PER_S, BINS)
            other.start()
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        results = json.loads(process.communicate(timeout=60)[0])["results"]
    finally:
        if page:
            page.page.close()
        if other:
            other.stop()
        end(process)
    ledgers = [channel["ledger"] for channel in results["channels"]]
    if not all(ledger["balances"] for ledger in ledgers):
        sys.exit(f"a ledger does not balance: {ledgers}")
    return sum(sum(ledger["lost"].values()) for ledger in ledgers), sum(ledger["expected"] for ledger in ledgers)


def highest(radio, seconds, **looks):
    """The highest rate of the list without a loss, and the share that is lost at the first one."""
    first = None
    for rate_hz in PAIR_HZ:
        gone, all_samples = pair(radio, rate_hz, seconds, **looks)
        first = gone / max(1, all_samples) if first is None else first
        # The radio has to be as fast as it says.
        if not gone and all_samples > 0.8 * 2 * rate_hz * seconds:
            return rate_hz, first
    return 0, first


def of_two_channels(browser, radio, seconds):
    """Two channels of 250 MS/s, alone and while somebody looks."""
    most = PAIR_HZ[0] / 1e6
    for what, looks in (("nobody looks", {}), ("1 client", {"client": True}), ("the page is open", {"browser": browser})):
        rate_hz, share = highest(radio, seconds, **looks)
        note = "" if not share else f" ({100 * share:.2g} % lost at {most:.0f})"
        what = f"2 channels without a loss, {what}{note}"
        say(what, f"2 x {rate_hz / 1e6:.0f} MS/s", f"2 x {most:.0f} MS/s", rate_hz == PAIR_HZ[0])


def start_browser(driver, folder, *under):
    """Chromium, started by this command if there is one."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not program:
        sys.exit("no Chromium here (Debian package chromium)")
    start = folder / f"chromium-{len(under)}"
    start.write_text(f'#!/bin/sh\nexec {shlex.join([*under, program])} "$@"\n')
    start.chmod(0o755)
    return driver.chromium.launch(executable_path=start, args=["--no-sandbox"] if os.geteuid() == 0 else [])


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {PROGRAM}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        folder = pathlib.Path(folder)
        browser = start_browser(driver, folder)
        # The samples of this image are a function of time: the radio needs little of the processor. Its buffer is that of
        # `bench rate`, so that a pause of the machine is no loss of the stream.
        radio = Radio(folder, "--any-rate", "--rx-antenna", "tone:1e6,0.5", "--rx-buffer-samples", "16777216")
        server = Server(radio, folder)
        try:
            server.start(centre_hz=None, rate_hz=RATE_HZ, control=(), out=("/dev/null",))
            of_the_server(server, seconds)
            of_the_page(browser, server, seconds)
            gone = lost(server)
            say("samples lost at 25 MS/s meanwhile", f"{gone}", "0", gone == 0)
            server.stop()
            browser.close()
            browser = start_browser(driver, folder, "chrt", "--idle", "0")
            of_two_channels(browser, radio, min(seconds, 5))
        finally:
            server.stop()
            end(radio.process)
            browser.close()
    if missed:
        sys.exit(f"{len(missed)} goals missed")


if __name__ == "__main__":
    main()
