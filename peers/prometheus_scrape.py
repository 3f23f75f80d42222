#!/usr/bin/python3
"""Debian's Prometheus scrapes a reception with lost packets, and its own queries agree with the ledger.

`millstream rx --web` receives from an emulated radio while a fault removes packets. A Prometheus with its configuration and
its data in a temporary folder scrapes `/metrics` every half second. Then, through Prometheus' own HTTP API:

- the target is up, and every family has the type that we say it has;
- sum(lost) + sum(delivered) - sum(expected) is 0 at each scrape, while samples are being lost;
- no counter is above what the document of `--json` says at the end, and the lost ones are of the injected cause;
- the histogram of delays gives quantiles.

`promtool check metrics` has nothing to say.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import common
from common import MILLSTREAM, Radio, die_with_parent, free_port, skip

RATE_HZ = 500e3
SCRAPE_S = 0.5
# Scrapes with new samples that have to be there.
SCRAPES = 16
PATIENCE_S = 90
eventually = functools.partial(common.eventually, patience_s=PATIENCE_S, pause_s=0.2)
EXPECTED, DELIVERED, LOST = (f"sum(millstream_samples_{what}total)" for what in ("", "delivered_", "lost_"))
TYPES = {
    "millstream_build_info": "gauge",
    "millstream_samples_total": "counter",
    "millstream_samples_lost_total": "counter",
    "millstream_block_busy_seconds_total": "counter",
    "millstream_ring_fill_ratio": "gauge",
    "millstream_behind_seconds": "histogram",
}


def get(url):
    """The text at a URL; None while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except (OSError, urllib.error.URLError):
        return None


class Prometheus:
    """A Prometheus that scrapes one address, for the length of a `with` block."""

    def __init__(self, folder, target):
        self.folder, self.url = folder, f"http://127.0.0.1:{free_port()}"
        self.config = os.path.join(folder, "prometheus.yml")
        with open(self.config, "w", encoding="utf-8") as config:
            config.write(f"global:\n  scrape_interval: {round(SCRAPE_S * 1000)}ms\n"
                         "scrape_configs:\n  - job_name: millstream\n"
                         f"    static_configs:\n      - targets: ['{target}']\n")

    def __enter__(self):
        self.log = open(os.path.join(self.folder, "prometheus.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={self.config}", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address={self.url.removeprefix('http://')}", "--log.level=warn"],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        eventually("Prometheus is ready", self.is_ready)
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            sys.exit(f"prometheus ended with {self.process.returncode}:\n{self.log.read()}")
        return get(f"{self.url}/-/ready")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def ask(self, what, **query):
        """The data of an answer of the HTTP API."""
        text = get(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(query)}")
        answer = json.loads(text) if text else {"status": "no answer"}
        if answer["status"] != "success":
            sys.exit(f"Prometheus refuses {what} {query}: {answer}")
        return answer["data"]

    def scrapes(self, query):
        """The value of an expression at the time of each scrape: expressions are evaluated at times of our choice."""
        now = time.time()
        series = self.ask("query_range", query=query, start=now - 60, end=now, step=SCRAPE_S / 2)["result"]
        return [(at, float(value)) for one in series for at, value in one["values"]]

    def value(self, query):
        """The value of an expression now; None if it has none."""
        result = self.ask("query", query=query)["result"]
        return float(result[0]["value"][1]) if result else None


def check_types(prometheus):
    """Every family has the type that the documentation says."""
    metadata = prometheus.ask("metadata")
    for family, kind in TYPES.items():
        said = {one["type"] for one in metadata.get(family, [])}
        if said != {kind}:
            sys.exit(f"{family} is {said or 'missing'} for Prometheus, not {kind}")


def check_identity(prometheus):
    """At every scrape all that was expected either arrived or was lost."""
    def enough():
        values = {value for _, value in prometheus.scrapes(EXPECTED)}
        lost = {value for _, value in prometheus.scrapes(LOST)}
        return len(values) >= SCRAPES and len(lost) >= 3
    eventually(f"{SCRAPES} scrapes with new samples and lost ones", enough)
    off = [(at, value) for at, value in prometheus.scrapes(f"{LOST} + {DELIVERED} - {EXPECTED}") if value != 0]
    if off:
        sys.exit(f"lost + delivered is not what was expected, at {len(off)} times; the first is {off[0]}")


def check_promtool(metrics):
    """promtool has nothing to say."""
    done = subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)
    if done.returncode != 0 or done.stdout.strip():
        sys.exit(f"promtool check metrics: {done.stdout}")


@contextlib.contextmanager
def ending(process):
    """Ends a process that a failure would leave running."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()


def main():
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            skip(f"no {program} (Debian package prometheus)")
    if not os.access(MILLSTREAM, os.X_OK):
        skip(f"no {MILLSTREAM} (run make build)")
    with tempfile.TemporaryDirectory() as folder, \
            Radio("--rx-antenna", "tone:1e5,0.5", "--fault", "lose to_host data p=0.01 seed=5") as radio:
        port = free_port()
        command = [MILLSTREAM, "rx", "--json", "--args", f"addr={radio.addr}", "--rate", str(RATE_HZ),
                   "--out", os.path.join(folder, "a.sc16"), "--web", str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                              text=True, preexec_fn=die_with_parent) as rx, ending(rx):
            eventually("the dashboard answers", lambda: get(f"http://127.0.0.1:{port}/metrics"))
            with Prometheus(folder, f"127.0.0.1:{port}") as prometheus:
                eventually("the target is up", lambda: prometheus.value("up{job='millstream'}") == 1)
                check_identity(prometheus)
                check_types(prometheus)
                def quantile_of_delays():
                    value = prometheus.value("histogram_quantile(0.99, rate(millstream_behind_seconds_bucket[10s]))")
                    return value if value is not None and value > 0 else None
                quantile = eventually("a quantile of the delays", quantile_of_delays)
                check_promtool(get(f"http://127.0.0.1:{port}/metrics"))
                seen = {what: prometheus.value(query) for what, query in
                        (("expected", EXPECTED), ("delivered", DELIVERED), ("lost", LOST))}
                rx.send_signal(signal.SIGINT)
                document = json.loads(rx.communicate(timeout=60)[0])
        ledger = document["results"]["ledger"]
        final = {"expected": ledger["expected"], "delivered": ledger["delivered"], "lost": sum(ledger["lost"].values())}
        for what, value in seen.items():
            if not 0 < value <= final[what]:
                sys.exit(f"Prometheus saw {value:.0f} samples {what}, but at the end there were {final[what]}")
        if ledger["lost"]["network_loss"] != final["lost"]:
            sys.exit(f"a fault removed packets, but the lost samples are {ledger['lost']}")
        print(f"Prometheus saw {seen['expected']:.0f} = {seen['delivered']:.0f} + {seen['lost']:.0f} samples of "
              f"{final['expected']}; p99 behind the radio {quantile * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
