#!/usr/bin/env python3
"""Where should the network's threads run: with the application, or away from it? And with which priority?

UDP round trips between two namespaces over a veth pair, both ends of real time (FIFO 50) on a CPU each. The NAPI
threads of both interfaces are placed in four ways, and beside a rival of FIFO 45 given two priorities, in turns.
What has a lower priority than the application that waits for it is named. A thread of the idle class keeps each CPU
from halting: being woken by a hypervisor would hide all else. Needs root, iproute2 and ethtool; everything it makes
goes with it.

    sudo docs/evidence/host_placements.py [--rounds N] [--count N]
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../peers"))
from common import LABORATORY, MILLSTREAM, beside  # noqa: E402  (found by the line above)
from pairs import quantile  # noqa: E402

SIDES = [(f"ms-place-{os.getpid()}-{side}", f"ms-p{side}", f"10.78.0.{host}") for side, host in (("a", 1), ("b", 2))]
APPLICATION, RIVAL = 50, 45
# Half of each millisecond's CPU, by the clock.
RIVAL_CODE = """
import time
while True:
    end = time.monotonic() + 0.0005
    while time.monotonic() < end: pass
    time.sleep(0.0005)
"""
# Name, threaded, where (of the CPUs of this side and of the other), NAPI's priority, rival.
CASES = [
    ("soft interrupt, where it comes", False, None, None, False),
    ("NAPI thread with its application", True, "here", 60, False),
    ("NAPI thread on the other CPU", True, "there", 60, False),
    ("NAPI thread anywhere, ordinary", True, "any", None, False),
    ("with it, 60, beside a rival of 45", True, "here", 60, True),
    ("with it, 40, beside a rival of 45", True, "here", 40, True),
]


def run(*words):
    """A command that has to succeed."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def inside(side, *words):
    """The same in a side's namespace, whose interfaces are in its /sys."""
    return run("ip", "netns", "exec", side[0], *words)


def build():
    """Two namespaces and a pair that has NAPI (by GRO)."""
    for side in SIDES:
        run("ip", "netns", "add", side[0])
    (here, one, _), (there, other, _) = SIDES
    run("ip", "link", "add", one, "netns", here, "type", "veth", "peer", "name", other, "netns", there)
    for side in SIDES:
        inside(side, "ip", "addr", "add", side[2] + "/24", "dev", side[1])
        inside(side, "ip", "link", "set", side[1], "up")
        # Without the latter veth hands datagrams of segmenting senders past NAPI.
        inside(side, "ethtool", "-K", side[1], "gro", "on", "rx-udp-gro-forwarding", "on")


def napi_threads(side):
    """Numbers of the NAPI threads of a side's interface."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/comm", encoding="utf-8") as file:
                    if file.read().startswith(f"napi/{side[1]}"):
                        found.append(int(entry))
            except OSError:
                pass
    return found


def turns(threads):
    """How often the threads have had a CPU (proc(5), schedstat)."""
    total = 0
    for thread in threads:
        with open(f"/proc/{thread}/schedstat", encoding="utf-8") as file:
            total += int(file.read().split()[2])
    return total


def place(case, cpus):
    """Places the NAPI threads; what is the wrong way round."""
    _, threaded, where, priority, _ = case
    inverted = []
    for index, side in enumerate(SIDES):
        inside(side, "sh", "-c", f"echo {int(threaded)} > /sys/class/net/{side[1]}/threaded")
        time.sleep(0.1)
        threads = napi_threads(side) if threaded else []
        if threaded and not threads:
            sys.exit("this kernel gives veth no NAPI threads")
        for thread in threads:
            here = {"here": {cpus[index]}, "there": {cpus[1 - index]}, "any": set(cpus)}[where]
            os.sched_setaffinity(thread, here)
            policy = os.SCHED_OTHER if priority is None else os.SCHED_FIFO
            os.sched_setscheduler(thread, policy, os.sched_param(priority or 0))
            # Asked of the kernel, not of the plan.
            found = os.sched_getparam(thread).sched_priority
            if found <= APPLICATION:
                inverted.append(f"napi/{side[1]} {f'fifo {found}' if found else 'ordinary'}")
    return inverted


def end(processes):
    """Ends them."""
    for process in processes:
        process.kill()
        process.wait()


def measure(cpus, count):
    """p50 and p99, microseconds."""
    ends = [f"{side[1]}@{side[0]}" for side in SIDES]
    text = run(LABORATORY, "latency", "udp", "--interface", ends[0], "--peer", ends[1], "--only", "nothing but the base",
               "--cpu", str(cpus[0]), "--peer-cpu", str(cpus[1]), "--class", f"fifo:{APPLICATION}", "--count", str(count),
               "--repeat", "1", "--json")
    classes = json.loads(text)["results"]["records"][0]["observed"]["histogram"]["classes_ns"]
    return [quantile(dict(classes), share) / 1e3 for share in (0.5, 0.99)]


def main():
    """All cases in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each case")
    parser.add_argument("--count", type=int, default=5000, help="round trips of each")
    args = parser.parse_args()
    # As an exception, so that everything is taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    if os.geteuid() != 0:
        sys.exit("network namespaces and priorities need root")
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        sys.exit("two CPUs are needed, one for each side")
    seen, wrong = {case[0]: [] for case in CASES}, {}
    awake = [beside([sys.executable, "-c", "while True: pass"], cpu, os.SCHED_IDLE) for cpu in cpus]
    try:
        build()
        for turn in range(args.rounds):
            for case in CASES if turn % 2 == 0 else reversed(CASES):
                wrong[case[0]] = place(case, cpus)
                # Between the application's priority and that of a misplaced NAPI thread.
                where = cpus if case[4] else []
                rivals = [beside([sys.executable, "-c", RIVAL_CODE], cpu, os.SCHED_FIFO, RIVAL)
                          for cpu in where]
                threads = [thread for side in SIDES for thread in napi_threads(side)] if case[1] else []
                before = turns(threads)
                try:
                    seen[case[0]].append(measure(cpus, args.count))
                    if threads and turns(threads) - before < args.count:
                        sys.exit(f"{case[0]}: the NAPI threads did not handle the packets")
                finally:
                    end(rivals)
    finally:
        end(awake)
        for side in SIDES:
            subprocess.run(["ip", "netns", "del", side[0]], check=False, capture_output=True)
    print(f"round trips, medians over {args.rounds} rounds, application fifo {APPLICATION} on CPUs {cpus}, microseconds")
    print(f"{'':<36} {'p50':>8} {'p99':>8}  to the first")
    base = None
    for name, rows in seen.items():
        p50, p99 = (statistics.median(row[figure] for row in rows) for figure in (0, 1))
        base = base or (p50, p99)
        note = f"  INVERTED: {', '.join(wrong[name])} below fifo {APPLICATION}" if wrong[name] else ""
        print(f"{name:<36} {p50:>8.1f} {p99:>8.1f}  {p50 / base[0]:.2f} {p99 / base[1]:.2f}{note}")


if __name__ == "__main__":
    main()
