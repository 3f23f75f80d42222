#!/usr/bin/env python3
"""`millstream-lab latency port` beside `tc` and `ping` through a port that tc has made as slow.

A port of 10 Mbit/s, once with bulk in the order of arrival behind a queue of 50 frames, once with priority. Ours:
what tc says of the port while we measure must be what we asked for, and its queue must count. Theirs: the same port
by tc's own commands, bulk of a plain socket, round trips by ping. A full queue takes 50 x 1.23 ms. With --measure, on
a quiet machine, medians agree within a fifth, and with priority both are below three frames' time; otherwise within
a half, and below half of the queue's.
"""

import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

import namespace
from common import LABORATORY, die_with_parent, skip

MBIT, QUEUE, BULK = 10, 50, 1500
FRAME_MS = (14 + BULK + 24) * 8 / MBIT / 1e3
OURS, THEIRS = "10.79.0.1", "10.79.0.2"
# The first band of pfifo_fast, by the type of service (lowest delay).
FIRST = ["-Q", "0x10"]


def ours(topology):
    """The median of a run of ours, ms, and what tc said of the port meanwhile."""
    command = [LABORATORY, "latency", "port", "--json", "--link-rate", f"{MBIT}M", "--topology", topology, "--queue",
               str(QUEUE), "--share", "1.2", "--count", "300", "--packet-rate", "50", "--repeat", "1"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           preexec_fn=die_with_parent)
    told, done = "", threading.Event()

    def look():
        nonlocal told
        while not done.wait(0.1):
            # The process of either side is in a network of its own.
            for child in subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True,
                                        check=False).stdout.split():
                where = ["nsenter", "--net", "--target", child, "tc", "-s", "-d"]
                said = [subprocess.run([*where, what, "show", "dev", "ms-a"], capture_output=True, text=True,
                                       check=False).stdout for what in ("class", "qdisc")]
                # Either may find the port gone.
                if "leaf" in said[0] and "parent 1:1" in said[1]:
                    told = said[0] + said[1]

    looker = threading.Thread(target=look)
    looker.start()
    output, errors = run.communicate(timeout=120)
    done.set()
    looker.join()
    if run.returncode != 0:
        sys.exit(f"millstream: {errors}")
    row = json.loads(output)["results"]["rows"][-1]
    left = (sum(count for _, count in row["histogram"]["classes_ns"]) - row["lost"]) / 2
    for upper_ns, count in row["histogram"]["classes_ns"]:
        left -= count
        if left <= 0:
            return upper_ns / 1e6, told
    sys.exit("no round trip came back")


def bulk(over):
    """Fills the port of this namespace."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_SNDBUFFORCE (linux/socket.h)
    period, due = FRAME_MS / 1e3 / 1.2, time.monotonic()
    while not over.is_set():
        if due > time.monotonic():
            time.sleep(period / 2)
            continue
        due = max(due, time.monotonic() - 0.1) + period
        sender.sendto(bytes(BULK - 28), ("10.79.0.99", 9))


def theirs(leaf, options):
    """The median of ping's round trips, ms. A burst of 38 bytes is the 30 us that our port gives."""
    for line in ["qdisc replace dev peer0 root handle 1: htb default 1",
                 f"class add dev peer0 parent 1: classid 1:1 htb rate {MBIT}mbit burst 38 overhead 24 mpu 84 "
                 "linklayer ethernet",
                 f"qdisc add dev peer0 parent 1:1 handle 2: {leaf}"]:
        subprocess.run(["tc", *line.split()], check=True, capture_output=True)
    over = threading.Event()
    sender = threading.Thread(target=bulk, args=(over,))
    sender.start()
    time.sleep(1)
    try:
        done = subprocess.run(["ping", "-n", "-i", "0.02", "-c", "300", "-W", "1", *options, THEIRS],
                              capture_output=True, text=True, timeout=120, check=False)
    finally:
        over.set()
        sender.join()
        subprocess.run(["tc", "qdisc", "del", "dev", "peer0", "root"], check=True)
    trips = [float(trip) for trip in re.findall(r"time=([\d.]+) ms", done.stdout)]
    if len(trips) < 20:
        sys.exit(f"ping: {done.stdout}{done.stderr}")
    return statistics.median(trips)


def main():
    """Compares."""
    for program in ["tc", "ping", "nsenter", "pgrep"]:
        if shutil.which(program) is None:
            skip(f"no {program} (Debian packages iproute2, iputils-ping, util-linux, procps)")
    if not os.access(LABORATORY, os.X_OK):
        skip(f"no {LABORATORY} (run make build-lab)")
    if os.geteuid() != 0:
        skip("rates of interfaces need root")
    namespace.enter()
    probe = subprocess.run("tc qdisc add dev lo root htb".split(), capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        skip(f"this kernel has no htb ({probe.stderr.strip()})")
    strict = "--measure" in sys.argv[1:]
    share, first_ms = (0.2, 3 * FRAME_MS) if strict else (0.5, QUEUE * FRAME_MS / 2)
    good = True
    with namespace.Neighbour(["sleep", "1000"], OURS, THEIRS, subprocess.DEVNULL):
        namespace.ip("neigh", "replace", "10.79.0.99", "lladdr", "02:00:00:00:00:99", "dev", "peer0")
        for topology, leaf, options in [("bulk", f"pfifo limit {QUEUE}", []), ("priority", "pfifo_fast", FIRST)]:
            (mine, told), other = ours(topology), theirs(leaf, options)
            wanted = [rf"rate {MBIT}Mbit overhead 24", rf"{leaf.split()[0]} 2: parent 1:1"]
            if topology == "bulk":
                wanted += [rf"limit {QUEUE}p", r"dropped [1-9]"]
                near = abs(mine - other) <= share * other and min(mine, other) > (1 - share) * QUEUE * FRAME_MS
            else:
                near = max(mine, other) < first_ms
            missing = [pattern for pattern in wanted if not re.search(pattern, told)]
            print(f"{topology}: medians, ours and ping's: {mine:.2f} and {other:.2f} ms; a frame {FRAME_MS:.2f} ms, "
                  f"{QUEUE} of them {QUEUE * FRAME_MS:.1f} ms" + (f"; tc does not say {missing}: {told}" if missing else
                                                                 "; tc says of our port what we asked for"))
            good = good and near and not missing
    print("they agree" if good else "they differ")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
