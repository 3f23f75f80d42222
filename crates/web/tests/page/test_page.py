"""The page in a browser, against `millstream rx --web` and an emulated radio."""

import os
import re
import time

import pytest
from conftest import CARRIER_HZ, PATIENCE_S, RATE_HZ, eventually

# How long the test of the page's memory watches after its histories are full.
HEAP_S = float(os.environ.get("MILLSTREAM_PAGE_SECONDS", "60"))
HISTORIES_FULL_S = 65


def near(page, hz):
    """Whether the brightest column is that of a frequency, within a bin and a column."""
    found, wide, said = page.brightest()
    return abs(found - hz) <= RATE_HZ / said["bins"] + wide


def test_a_carrier_is_in_its_column(open_page):
    page = open_page()
    page.lines()
    eventually("the carrier is in its column", lambda: near(page, CARRIER_HZ))
    # From close by, where a bin is wider than a column.
    box = page.page.locator("#stack").bounding_box()
    for _ in range(30):
        said = page.scope()
        if (said["toHz"] - said["fromHz"]) / said["plotWidth"] < RATE_HZ / 16384:
            break
        place = box["x"] + said["plotLeft"] + (CARRIER_HZ - said["fromHz"]) / (said["toHz"] - said["fromHz"]) * said["plotWidth"]
        page.page.mouse.move(place, box["y"] + 60)
        page.page.mouse.wheel(0, -200)
        time.sleep(0.3)

    def at_its_bin():
        found, wide, said = page.brightest()
        return abs(found - CARRIER_HZ) <= RATE_HZ / said["bins"] and said["to"] - said["from"] < RATE_HZ / 4
    eventually("the carrier is at its bin from close by", at_its_bin)
    page.page.click("#whole")
    eventually("the whole band is shown again", lambda: page.scope()["toHz"] - page.scope()["fromHz"] > RATE_HZ * 0.99)


def test_tuning_moves_the_carrier(open_page, server):
    page = open_page()
    page.lines()
    before = server.get("hello")["streams"][0]["centre_hz"]
    eventually("the carrier is in its column", lambda: near(page, CARRIER_HZ))
    row = page.page.locator('form[data-control$=".freq_hz"]').first
    for centre in (CARRIER_HZ + 200e3, before):
        row.locator("input").fill(f"{centre / 1e6}M")
        row.locator("button").click()
        eventually("the radio says its new frequency", lambda: abs(server.get("hello")["streams"][0]["centre_hz"] - centre) < 10)

        def moved():
            said = page.scope()
            return abs((said["fromHz"] + said["toHz"]) / 2 - centre) < 2 * RATE_HZ / said["bins"] and near(page, CARRIER_HZ)
        eventually("the axis and the carrier have moved", moved)
        # The field says the present frequency.
        said = f"now {centre / 1e6:.3f} MHz"
        eventually("the field says it", lambda: row.locator("input").get_attribute("placeholder") == said)
    assert page.page.get_attribute("#answer", "data-good") == "yes"


def test_the_bar_of_a_gap_is_at_its_time(open_page, server, radio):
    page = open_page()
    page.page.select_option("#span", "5")
    page.lines()
    time.sleep(2)
    last = max((event["seq"] for event in server.get("events")["events"]), default=-1)
    radio.fault("add", "lose", "to_host", "data", "count=150")

    def gaps():
        events = server.get("events")["events"]
        return [event for event in events if event["seq"] > last and (event.get("lost") or {}).get("network_loss", 0) > 0]
    eventually("the server tells of a gap", gaps)
    time.sleep(1)
    page.page.click("#hold")
    time.sleep(0.5)
    hello, gap = server.get("hello"), max(gaps(), key=lambda event: event["items"])
    end_s = gap["ticks"] / hello["streams"][0]["ticks_hz"]
    begin_s = end_s - gap["items"] / RATE_HZ
    assert end_s - begin_s > 0.02, gap
    # The edge of the bar has the colour of its cause.
    rows = page.page.evaluate("""() => {
      const canvas = document.getElementById("waterfall"), said = document.getElementById("stack").dataset;
      const pixels = canvas.getContext("2d").getImageData(Math.round(said.plotLeft) + 3, 0, 1, canvas.height).data, rows = [];
      for (let y = 0; y < canvas.height; y += 1) {
        if (pixels[4 * y] === 0x00 && pixels[4 * y + 1] === 0x72 && pixels[4 * y + 2] === 0xb2) rows.push(y);
      }
      return rows;
    }""")
    said = page.scope()
    top_s = said["newestS"] - (rows[0] - said["top"]) * said["pixelS"]
    bottom_s = said["newestS"] - (rows[-1] + 1 - said["top"]) * said["pixelS"]
    # A pixel at each end is drawn only in part.
    assert abs(top_s - end_s) <= 2 * said["pixelS"], (top_s, end_s, said)
    assert abs(bottom_s - begin_s) <= 2 * said["pixelS"], (bottom_s, begin_s, said)
    text = page.page.text_content("#log")
    assert "network loss" in text, text


def test_a_line_is_drawn_soon(open_page):
    page = open_page()
    page.lines()
    eventually("the page knows how old its lines are", lambda: "delayMs" in page.scope())
    # The aim is 200 ms on a machine that is not busy; here it may be busy with anything.
    eventually("lines are drawn soon", lambda: 0 <= page.scope()["delayMs"] < 1000)


def test_the_ledger_adds_up_on_the_page(open_page, server):
    page = open_page()

    def ledger():
        numbers = [int(re.sub(r"\D", "", text)) for text in page.page.locator("#equation b").all_text_contents()]
        return numbers if len(numbers) == 3 and numbers[0] > 0 else None
    for _ in range(5):
        expected, delivered, lost = eventually("the ledger is shown", ledger)
        assert expected == delivered + lost
        time.sleep(0.4)
    assert page.page.get_attribute("#balance", "data-good") == "yes"
    said = server.get("status")["ledgers"][0]
    assert said["expected"] >= expected and said["expected"] - expected < 20 * RATE_HZ


def test_samples_that_are_received_and_sent_are_no_common_sum(open_page):
    page = open_page()
    assert page.page.evaluate("""async () => {
      const { Store } = await import("/store.js"), store = new Store();
      const received = { name: "in", expected: 10, delivered: 9, lost: { late: 1 } };
      const sent = { name: "out", expected: 7, delivered: 5, held: 2, lost: {} };
      const said = () => [store.both, store.total.expected, store.total.held, store.total.difference];
      store.takeStatus({ elapsed_s: 1, ledgers: [received, sent] });
      const first = said();
      store.choose(true);
      const second = said();
      store.takeStatus({ elapsed_s: 2, ledgers: [received] });
      return [first, second, said()];
    }""") == [[True, 10, 0, 0], [True, 7, 2, 0], [False, 10, 0, 0]]


def test_the_loads_of_blocks_are_the_time_of_their_thread(open_page):
    page = open_page()
    sums = {}

    def note():
        for name, text in page.page.evaluate("""() => [...document.querySelectorAll("#flow-picture .lane-load")].map((load, index) =>
            [document.querySelectorAll("#flow-picture .lane-name")[index].textContent, load.textContent])"""):
            numbers = [float(number) for number in re.findall(r"([\d.]+) %", text)]
            if len(numbers) == 2:
                thread, blocks = sums.setdefault(name.split(" · ")[0], ([], []))
                thread.append(numbers[0])
                blocks.append(numbers[1])
    end = time.monotonic() + 8
    while time.monotonic() < end:
        note()
        time.sleep(0.25)
    assert sums, "no partition is shown"
    busy = 0.0
    for name, (thread, blocks) in sums.items():
        thread, blocks = sum(thread) / len(thread), sum(blocks) / len(blocks)
        busy += blocks
        # A block's time is the wall clock's: on a machine with other work it contains what others took meanwhile.
        assert blocks >= thread * 0.5 - 2, (name, thread, blocks)
        assert blocks <= thread * (1.5 + os.getloadavg()[0] / os.cpu_count()) + 5, (name, thread, blocks)
    assert busy > 0


def test_nobody_looks_and_nothing_is_sent(open_page):
    page = open_page()
    page.lines()
    eventually("lines arrive", lambda: page.frames_in(1) > 0)
    show = """(hidden) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.page.evaluate(show, True)
    eventually("no line arrives", lambda: page.frames_in(2) == 0)
    page.page.evaluate(show, False)
    eventually("lines arrive again", lambda: page.frames_in(1) > 0)


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_phone_shows_everything(open_page, scheme):
    page = open_page(width=390, height=844, scheme=scheme, touch=True)
    page.lines()
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.page.evaluate("document.documentElement.dataset.theme") == scheme
    page.page.locator("#stack").scroll_into_view_if_needed()
    box = page.page.locator("#stack").bounding_box()
    page.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 60)
    eventually("a tap reads frequency and level", lambda: "dBFS" in page.page.text_content("#readout"))


def test_keys_do_what_buttons_do(open_page):
    page = open_page()
    page.lines()
    page.page.focus("#stack")
    page.page.keyboard.press("ArrowRight")
    eventually("the cursor reads a level", lambda: "dBFS" in page.page.text_content("#readout"))
    page.page.keyboard.press("+")
    eventually("the view is half as wide", lambda: page.scope()["toHz"] - page.scope()["fromHz"] < RATE_HZ * 0.6)
    page.page.keyboard.press("0")
    page.page.keyboard.press("d")
    assert page.page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_page_ends_a_run_and_comes_back_for_the_next_one(open_page, server):
    page = open_page(allowed_errors=("WebSocket connection", "ERR_CONNECTION_REFUSED", "Failed to load resource"))
    page.lines()
    run = server.get("hello")["run"]
    page.page.click('form[data-control="run.stop"] button')
    assert server.process.wait(PATIENCE_S) == 0, server.log.read_text()
    eventually("the page says that nobody is there", lambda: page.state() != "live")
    for part in ("#control-body", "#control-run"):
        eventually("nothing can be set behind the end", lambda part=part: not page.page.is_visible(part))
    time.sleep(3)
    # Tuned elsewhere, the carrier is at another place: it was 100 kHz above the middle, now it is 200 kHz below.
    centre = CARRIER_HZ + 200e3
    server.start(centre)
    assert server.get("hello")["run"] != run
    eventually("the page is live again", lambda: page.state() == "live")

    def moved():
        said = page.scope()
        return abs((said["fromHz"] + said["toHz"]) / 2 - centre) < 2 * RATE_HZ / said["bins"] and near(page, CARRIER_HZ)
    eventually("the axis and the carrier have moved", moved)
    eventually("the ledger begins anew", lambda: page.page.get_attribute("#balance", "data-good") == "yes")


@pytest.mark.slow
def test_the_memory_of_the_page_does_not_grow(open_page):
    page = open_page()
    page.lines()
    tools = page.page.context.new_cdp_session(page.page)

    def used():
        tools.send("HeapProfiler.collectGarbage")
        usage = tools.send("Runtime.getHeapUsage")
        return usage["usedSize"] + usage.get("backingStorageSize", 0)
    time.sleep(HISTORIES_FULL_S)
    before = used()
    time.sleep(HEAP_S)
    after = used()
    assert after - before < 2_000_000, (before, after)
    assert after < 60_000_000, after
