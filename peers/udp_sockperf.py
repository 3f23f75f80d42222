#!/usr/bin/env python3
"""`millstream-lab latency udp` beside `sockperf ping-pong` over loopback: same CPUs, size and system calls, in turns.

Whole round trips. With --measure, on a quiet machine: medians within 1 us and 99th percentiles within 10 %, each
the median over pairs of runs; otherwise a quarter and a half. With --measure each CPU also has a thread of the idle
class that never sleeps, so that it does not halt between two packets: a virtual CPU that halts is woken by its
hypervisor, which takes some 25 us, varies by more than that, and is no part of either program.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

from common import LABORATORY, beside, die_with_parent, skip
from pairs import agree, quantile

BYTES, SECONDS = 22, 1


def ours():
    """A run of ours, blocking kernel sockets: p50 and p99, microseconds."""
    # A frame of 64 bytes holds 22 of payload.
    command = [LABORATORY, "latency", "udp", "--json", "--loopback", "--only", "none but the base",
               "--size", str(BYTES + 42), "--count", "20000", "--repeat", "1",
               "--cpu", CPUS.split(",")[0], "--peer-cpu", CPUS.split(",")[1]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"millstream: {done.stderr}")
    record = json.loads(done.stdout)["results"]["records"][0]
    # The middle of each class: there are 64 in an octave.
    classes = record["observed"]["histogram"]["classes_ns"]
    counts = {upper_ns * (1 - 1 / 192) / 1e3: count for upper_ns, count in classes}
    return quantile(counts, 0.5), quantile(counts, 0.99)


def theirs():
    """The same with sockperf."""
    command = ["taskset", "-c", CPUS.split(",")[0], "sockperf", "ping-pong", "-i", "127.0.0.1", "-p", PORT,
               "-m", str(BYTES), "-t", str(SECONDS), "--full-rtt"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found = dict(re.findall(r"percentile (\d+\.\d+) = +(\d+\.\d+)", done.stdout))
    if done.returncode != 0 or not found:
        sys.exit(f"sockperf: {done.stdout}{done.stderr}")
    return float(found["50.000"]), float(found["99.000"])


def free_port():
    """A UDP port that nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def main():
    """Compares."""
    if shutil.which("sockperf") is None:
        skip("no sockperf (Debian package sockperf)")
    if not os.access(LABORATORY, os.X_OK):
        skip(f"no {LABORATORY} (run make build-lab)")
    pairs = [int(os.environ.get(name, default)) for name, default in [("PAIRS_MIN", 5), ("PAIRS_MAX", 15)]]
    server = subprocess.Popen(
        ["taskset", "-c", CPUS.split(",")[1], "sockperf", "server", "-i", "127.0.0.1", "-p", PORT],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
    helpers = [server]
    if "--measure" in sys.argv[1:]:
        for cpu in CPUS.split(","):
            # It takes what the CPU has left, and gives way to everybody.
            helpers.append(beside(["sh", "-c", "while :; do :; done"], int(cpu), os.SCHED_IDLE))
    try:
        time.sleep(0.5)
        good = agree(ours, theirs, *pairs)
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()
    print(f"{BYTES} bytes between CPUs {CPUS}: " + ("they agree" if good else "they differ"))
    sys.exit(0 if good else 1)


ALLOWED = sorted(os.sched_getaffinity(0))
CPUS = f"{ALLOWED[0]},{ALLOWED[1 % len(ALLOWED)]}"
PORT = free_port()

if __name__ == "__main__":
    main()
