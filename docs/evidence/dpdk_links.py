#!/usr/bin/env python3
"""What a radio reaches over each link: the highest lossless rates, links in turns in one run.

The emulated radio has one CPU and the host another, as two processes, or those of --radio-cpus and --host-cpus. Kernel
UDP and AF_XDP go over a veth pair between two namespaces, DPDK over memory that both processes share (vhost with
virtio-user, memif). The program has to be built with DPDK (cargo build --release -p millstream-cli -p millstream-lab-cli --features millstream-cli/dpdk).
Needs root and iproute2; everything it makes goes with it.

    sudo docs/evidence/dpdk_links.py [--rounds N] [--seconds S] [--step HZ] [--max HZ] [--ways rx,tx,duplex] [--only WORD]
                                [--radio-cpus LIST --host-cpus LIST]
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../peers"))
from common import LABORATORY, MILLSTREAM, die_with_parent  # noqa: E402  (found by the line above)

RADIO, HOST = ("ms-links-r", "ms-lr", "10.79.0.2"), ("ms-links-h", "ms-lh", "10.79.0.1")
# Without a kernel below, addresses of their own.
OWN_RADIO, OWN_HOST = "10.79.1.2", "10.79.1.1"
BUFFERS = ["--rx-buffer-samples", str(1 << 24), "--tx-buffer-samples", str(1 << 22)]


def memory(radio, host, more="", radios=""):
    """Both ends of a link in memory, with options of both and of the radio's alone."""
    ends = ((radio, OWN_RADIO, radios), (host, OWN_HOST, ""))
    return [f"dpdk:{end},address={own}/24,udp_checksum=off{more}{only}" for end, own, only in ends]


def links(folder):
    """Name, the radio's link, the host's."""
    vhost = (f"vhost0,iface={folder}/vhost", f"virtio_user0,path={folder}/vhost")
    # By a path: names without one are of a network namespace. Jumbo frames take several slots of the ring.
    socket = f"socket={folder}/memif,socket-abstract=no,ring=4096"
    memif = (f"memif0,role=server,{socket}", f"memif1,{socket}")
    # The radio's window for transmitted samples is limited by the datagrams that its port holds.
    radio = ",full=wait,queue=8192"
    inline, polling = ",io=inline", ",io=inline,user_wait=spin"
    return [
        ("UDP", "udp", "udp"),
        ("xdp, inline", f"xdp:{RADIO[1]}{inline}", f"xdp:{HOST[1]}{inline}"),
        ("xdp, polling", f"xdp:{RADIO[1]}{polling}", f"xdp:{HOST[1]}{polling}"),
        ("dpdk vhost", *memory(*vhost, "", radio)),
        ("dpdk vhost, inline", *memory(*vhost, inline, radio)),
        ("dpdk vhost, polling", *memory(*vhost, polling, radio)),
        ("dpdk memif", *memory(*memif, "", radio)),
        ("dpdk memif, inline", *memory(*memif, inline, radio)),
        ("dpdk memif, polling", *memory(*memif, polling, radio)),
    ]


def run(*words):
    """A command that has to succeed."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def build():
    """Two namespaces and a pair between them; the radio's management is there whatever carries samples."""
    for side in (RADIO, HOST):
        run("ip", "netns", "add", side[0])
    run("ip", "link", "add", RADIO[1], "mtu", "9000", "netns", RADIO[0], "type", "veth",
        "peer", "name", HOST[1], "mtu", "9000", "netns", HOST[0])
    for side in (RADIO, HOST):
        run("ip", "-n", side[0], "addr", "add", side[2] + "/24", "dev", side[1])
        for device in ("lo", side[1]):
            run("ip", "-n", side[0], "link", "set", device, "up")


def start_radio(link, cpu):
    """A radio on a CPU, ready to be used."""
    address = RADIO[2]
    if link.startswith("dpdk:"):
        run("ip", "-n", RADIO[0], "addr", "replace", f"{OWN_RADIO}/32", "dev", "lo")
        run("ip", "-n", HOST[0], "route", "replace", f"{OWN_RADIO}/32", "via", RADIO[2])
        address = OWN_RADIO
    command = ["ip", "netns", "exec", RADIO[0], "taskset", "-c", cpu, MILLSTREAM, "sim", "radio", "--addr", address,
               "--any-rate", "--serial", "11", "--rx-antenna", "ramp", "--mtu", "9000", *BUFFERS, "--link", link]
    radio = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             preexec_fn=die_with_parent)
    said = ""
    for line in radio.stderr:
        said += line
        if line.startswith("ready"):
            return radio, address
    sys.exit(f"the radio did not start: {said}")


def ask(link, cpus, *words):
    """Results of a command of the host's with a radio of its own; none if it failed, which is said."""
    _, there, here = link
    radio, address = start_radio(there, cpus[0])
    try:
        command = ["ip", "netns", "exec", HOST[0], "taskset", "-c", cpus[1], LABORATORY, *words, "--json",
                   "--args", f"addr={address},link={here}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        radio.terminate()
        radio.communicate()
    document = json.loads(done.stdout or "{}")
    if "results" not in document:
        print(f"  {link[0]}: {document.get('error') or done.stderr.strip()}", file=sys.stderr)
    return document.get("results")


def highest(link, cpus, args, way):
    """Highest lossless rate of each channel, MS/s, and CPU seconds for 10⁹ samples."""
    ways = ["--duplex"] if way == "duplex" else ["--direction", way]
    pin = ["--cpu", cpus[1]] if cpus[1].isdigit() else ["--no-pin"]
    found = ask(link, cpus, "bench", "rate", *ways, "--search", "--channel", "0,1", *pin,
                "--step", str(args.step), "--max-rate", str(args.max), "--duration", str(args.seconds), "--tries", "2")
    if found is None:
        return None
    found = found["measured"][0]
    if found["rate_hz"] is None:
        return [0.0, 0.0]
    outcome = found["outcome"]
    both = [outcome[side] for side in ("rx", "tx")] if way == "duplex" else [outcome]
    samples = sum(one["samples"] for one in both)
    return [found["rate_hz"] / 1e6, both[0]["cpu_s"] / samples * 1e9]


def table(title, columns, rows):
    """Medians over rounds, and their ratio to the first row that has any."""
    print(f"\n{title}\n{'link':<24}" + "".join(f"{column:>12}" for column in columns) + "   to the first link")
    first = None
    for name, seen in rows:
        seen = [one for one in seen if one]
        if not seen:
            print(f"{name:<24}{'-':>12}")
            continue
        medians = [statistics.median(values) for values in zip(*seen)]
        first = first or medians
        ratios = "  ".join(f"{value / base:.2f}" if base else "-" for value, base in zip(medians, first))
        print(f"{name:<24}" + "".join(f"{value:>12.2f}" for value in medians) + f"   {ratios}   ({len(seen)} rounds)")


def rounds(chosen, count, measure):
    """Every link in turns, in an order that alternates."""
    seen = {link[0]: [] for link in chosen}
    for turn in range(count):
        for link in chosen if turn % 2 == 0 else reversed(chosen):
            seen[link[0]].append(measure(link))
            print(f"  {turn + 1} {link[0]:<24} {seen[link[0]][-1]}", file=sys.stderr)
    return list(seen.items())


def main():
    """All links in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each link")
    parser.add_argument("--seconds", type=float, default=2, help="how long a rate has to hold, twice")
    parser.add_argument("--step", type=float, default=25e6, help="step of the rates, Hz")
    parser.add_argument("--max", type=float, default=500e6, help="highest rate, Hz")
    parser.add_argument("--ways", default="rx,tx,duplex", help="which ways")
    parser.add_argument("--only", help="links whose name contains this word")
    parser.add_argument("--radio-cpus", help="CPUs of the radio, as taskset takes them (default: the first)")
    parser.add_argument("--host-cpus", help="CPUs of the host (default: the second)")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    # An orderly end, in which namespaces go.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    ours = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    if len(ours) < 2:
        sys.exit("two CPUs are needed, one for each side")
    cpus = [args.radio_cpus or ours[0], args.host_cpus or ours[1]]
    with tempfile.TemporaryDirectory(prefix="ms-links-") as folder:
        chosen = [link for link in links(folder) if (args.only or "") in link[0]]
        try:
            build()
            for way in args.ways.split(","):
                rows = rounds(chosen, args.rounds, lambda link: highest(link, cpus, args, way))
                table(f"{way}, two channels", ["MS/s each", "CPU s/10^9"], rows)
        finally:
            for side in (RADIO, HOST):
                subprocess.run(["ip", "netns", "del", side[0]], check=False, capture_output=True)


if __name__ == "__main__":
    main()
