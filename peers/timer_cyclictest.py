#!/usr/bin/env python3
"""`millstream-lab latency timer` beside cyclictest (Debian package rt-tests): same CPU, priority, interval, in turns.

With --measure, on a quiet machine: medians within 1 us and 99th percentiles within 10 %, each the median over
pairs of runs; otherwise a quarter and a half. PAIRS_MIN and PAIRS_MAX say how many pairs there are.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from common import LABORATORY, skip
from pairs import agree, microseconds, quantile

INTERVAL_US, COUNT, PRIORITY = 200, 4000, 90
CPU = max(os.sched_getaffinity(0))


def ours():
    """A run of ours: p50 and p99, microseconds."""
    command = [LABORATORY, "latency", "timer", "--json", "--cpus", str(CPU), "--class", f"fifo:{PRIORITY}",
               "--interval", f"{INTERVAL_US}us", "--count", str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"millstream: {done.stderr}")
    counts = microseconds(json.loads(done.stdout)["results"]["records"][0]["observed"]["histogram"])
    assert sum(counts.values()) == COUNT, counts
    return quantile(counts, 0.5), quantile(counts, 0.99)


def theirs():
    """The same with cyclictest."""
    with tempfile.NamedTemporaryFile() as file:
        command = ["cyclictest", "--quiet", "--mlockall", "--threads=1", f"--affinity={CPU}",
                   f"--priority={PRIORITY}", f"--interval={INTERVAL_US}", f"--loops={COUNT}",
                   "--histogram=1000000", f"--json={file.name}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            sys.exit(f"cyclictest: {done.stderr}")
        histogram = json.load(open(file.name, encoding="utf-8"))["thread"]["0"]["histogram"]
    counts = {int(value): count for value, count in histogram.items()}
    return quantile(counts, 0.5), quantile(counts, 0.99)


def main():
    """Compares."""
    if shutil.which("cyclictest") is None:
        skip("no cyclictest (Debian package rt-tests)")
    if not os.access(LABORATORY, os.X_OK):
        skip(f"no {LABORATORY} (run make build-lab)")
    probe = subprocess.run(["chrt", "-f", str(PRIORITY), "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        skip(f"no right to SCHED_FIFO {PRIORITY} (root)")
    pairs = [int(os.environ.get(name, default)) for name, default in [("PAIRS_MIN", 7), ("PAIRS_MAX", 25)]]
    good = agree(ours, theirs, *pairs)
    print(f"FIFO {PRIORITY}, every {INTERVAL_US} us on CPU {CPU}: " + ("they agree" if good else "they differ"))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
