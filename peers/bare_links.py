#!/usr/bin/python3
"""Our links against the shortest C programs for the same kernel interfaces, in one run.

For each row and size, in turns: `bare_links.c`, then `millstream-lab bench packets` (or `latency
link`), each on a veth pair with one queue between two network namespaces, sender on CPU 0, receiver
on CPU 1. What ours reach is divided by what the bare program reached right before; the table
shows medians, and minimum to maximum of that ratio.

As a test it asks for whole runs and wide margins in the better of two repetitions, because machines
are shared; the second is made only where the first does not reach them. With `--measure` it repeats
more often and asks for 90 % in every row's median.

Usage: peers/bare_links.py [--measure] [--only TEXT] [--repeat N] [--seconds S] [--fifo PRIORITY]
Exit status: 0 agrees, 1 not, 77 skipped because a needed program or right is not there.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import namespace
from common import LABORATORY, die_with_parent, skip

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bare_links.c")
SIZES = [64, 1514, 8042]
# Bare row, our row.
THROUGHPUT = [
    ("udp", "udp port, plain"),
    ("udp-spin", "kernel UDP, spin"),
    ("udp-gso", "udp port, GSO > plain"),
    ("udp-gso-gro", "udp port, GSO > GRO"),
    ("packet-ip", "packet, IP"),
    ("packet", "packet"),
    ("xdp-generic-spin", "xdp generic, spin"),
    ("xdp-generic-poll", "xdp generic, poll"),
    ("xdp-native-spin", "xdp native, spin"),
    ("xdp-native-poll", "xdp native, poll"),
]
# Of frames that come, those that leave again towards their sender.
SWAPS = [
    ("swap-xdp-generic-spin", "xdp generic, spin"),
    ("swap-xdp-native-spin", "xdp native, spin"),
]
TRIPS = [
    ("trip-udp", "kernel UDP"),
    ("trip-udp-spin", "kernel UDP, spin"),
    ("trip-packet-spin", "packet of 64 slots, spin"),
    ("trip-xdp-generic-spin", "xdp generic, spin"),
    ("trip-xdp-native-spin", "xdp native, spin"),
]
TRIP_BYTES, TRIPS_EACH = 64, 1500
ATTEMPTS = 3
# What ours have to reach of bare: when it is measured, and on a machine that others use.
MEASURED, SHARED = 0.9, 0.4
IP_A, IP_B = "10.78.0.1", "10.78.0.2"


def build(folder):
    """The bare program."""
    if shutil.which("gcc") is None:
        skip("no gcc (Debian package gcc)")
    program = os.path.join(folder, "bare_links")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-std=gnu11", "-o", program, SOURCE],
                   check=True)
    return program


def network():
    """A process that keeps a network namespace."""
    process = subprocess.Popen(namespace.unshare("sleep", "infinity"),
                               preexec_fn=die_with_parent)
    own = os.stat("/proc/self/ns/net").st_ino
    deadline = time.monotonic() + 10
    while os.stat(f"/proc/{process.pid}/ns/net").st_ino == own:
        if time.monotonic() > deadline:
            raise RuntimeError("unshare made no network namespace")
        time.sleep(0.01)
    return process


def join(pids):
    """A veth pair like the one that `millstream-lab bench packets` makes."""
    ends = [("bare-a", "02:62:00:00:00:01", IP_A), ("bare-b", "02:62:00:00:00:02", IP_B)]
    made = [f"{name} address {mac} mtu 9000 numtxqueues 1 numrxqueues 1 netns {pid}"
            for (name, mac, _), pid in zip(ends, pids)]
    namespace.ip(*f"link add {made[0]} type veth peer name {made[1]}".split(), pid=pids[0])
    for pid, (name, _, address), (_, peer_mac, peer) in zip(pids, ends, reversed(ends)):
        off = "/proc/sys/net/ipv6/conf/all/disable_ipv6"
        subprocess.run(["nsenter", "--net", "--target", str(pid), "sh", "-c",
                        f"test ! -e {off} || echo 1 > {off}"], check=True)
        for command in ["link set lo up", f"addr add {address}/24 dev {name}",
                        f"link set {name} up"]:
            namespace.ip(*command.split(), pid=pid)
        namespace.ip(*f"neigh replace {peer} lladdr {peer_mac} dev {name}".split(), pid=pid)


class Bench:
    """How both kinds are run."""

    def __init__(self, options, program, pids):
        self.options, self.program, self.pids = options, program, pids

    def bare(self, row, size):
        """Packets a second, or nanoseconds."""
        command = [self.program, row, str(size), str(round(self.options.seconds * 1000)),
                   str(self.options.fifo), *map(str, self.pids)]
        # On a machine that others use a side may not run at all while it counts.
        for _ in range(ATTEMPTS):
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            if done.returncode == 0:
                return float(done.stdout)
        sys.exit(f"{ATTEMPTS} times, {size} bytes: {done.stderr}")

    def ours(self, command, row, *more):
        """The results of a `millstream` command that measures one row beside plain UDP."""
        fifo = ["--class", f"fifo:{self.options.fifo}"] if self.options.fifo else []
        done = subprocess.run([LABORATORY, *command, "--only", row, *fifo, *more, "--json"],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            sys.exit(f"millstream {' '.join(command)}, {row}: {done.stderr}")
        return json.loads(done.stdout)["results"]

    def throughput(self, row, size, workload="drop"):
        """Packets a second of one of our rows."""
        results = self.ours(["bench", "packets"], row, "--size", str(size), "--repeat", "1",
                            "--no-trace", "--duration", str(self.options.seconds),
                            "--workload", workload)
        lines = results["workloads"][0]["tables"][0]["lines"]
        return next(line for line in lines if line["name"] == row)["runs"][0][1]["rate_pps"]

    def swap(self, row, size):
        """The same of frames that leave again towards their sender."""
        return self.throughput(row, size, "swap")

    def trip(self, row):
        """Nanoseconds that half of the round trips of one of our rows took at most."""
        results = self.ours(["latency", "link"], row, "--size", str(TRIP_BYTES), "--repeat", "1",
                            "--count", str(TRIPS_EACH))
        line = next(line for line in results["rows"] if line["name"] == row)
        return line["runs"][0][1][results["quantiles"].index(0.5)]


def ratios_of(pairs, unit):
    """What ours reached of the bare program, pair by pair. Of times, less is better."""
    return [bare / ours if unit == "us" else ours / bare for bare, ours in pairs]


def show(row, size, pairs, least, unit):
    """One line of the table; whether it is as it should be. Of times, less is better."""
    bare, ours = ([value / 1000 for value in side] for side in zip(*pairs))
    ratios = ratios_of(pairs, unit)
    ratio = statistics.median(ratios)
    judged = ratio if least == MEASURED else max(ratios)
    verdict = "ok" if judged >= least else "SHORT"
    print(f"{row:28} {size:5} {statistics.median(bare):10.1f} {statistics.median(ours):10.1f} "
          f"{unit:5} {ratio:6.2f}   {min(ratios):4.2f} to {max(ratios):4.2f}  {verdict}", flush=True)
    return judged >= least


def main():
    """All rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--only", action="append", help="part of a row's name, or its unit: kpps, us")
    parser.add_argument("--size", type=int, action="append")
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--fifo", type=int)
    options = parser.parse_args()
    defaults = (9, 0.12, 50) if options.measure else (2, 0.05, 50)
    for name, value in zip(["repeat", "seconds", "fifo"], defaults):
        if getattr(options, name) is None:
            setattr(options, name, value)
    if os.geteuid() != 0:
        skip("AF_XDP and AF_PACKET need root")
    if not os.access(LABORATORY, os.X_OK):
        skip(f"no {LABORATORY} (run make build-lab)")
    least = MEASURED if options.measure else SHARED
    networks = [network(), network()]
    try:
        pids = [process.pid for process in networks]
        join(pids)
        with tempfile.TemporaryDirectory() as folder:
            short = run(Bench(options, build(folder), pids), options, least)
    finally:
        for process in networks:
            process.kill()
    if short:
        sys.exit(f"below {least} of bare: {', '.join(short)}")
    print(f"agreed: every row is at {least} of the bare program's or above")


def run(bench, options, least):
    """Measures and shows; the rows that are short."""
    short = []
    print(f"{'row':28} {'bytes':>5} {'bare':>10} {'ours':>10} {'':5} {'ratio':>6}   spread",
          flush=True)
    plan = [(bare_row, row, size, bench.throughput, "kpps")
            for bare_row, row in THROUGHPUT for size in options.size or SIZES]
    plan += [(bare_row, f"MAC swap, {row}", size, lambda row, size: bench.swap(row[10:], size),
              "kpps") for bare_row, row in SWAPS for size in options.size or SIZES]
    plan += [(bare_row, row, TRIP_BYTES, lambda row, _: bench.trip(row), "us")
             for bare_row, row in TRIPS]
    for bare_row, row, size, ours, unit in plan:
        if not any(only in f"{row} {unit}" for only in options.only or [""]):
            continue
        pairs = []
        while len(pairs) < options.repeat:
            pairs.append((bench.bare(bare_row, size), ours(row, size)))
            if least == SHARED and max(ratios_of(pairs, unit)) >= least:
                break
        if not show(row, size, pairs, least, unit):
            short.append(f"{row} at {size}")
    return short


if __name__ == "__main__":
    main()
