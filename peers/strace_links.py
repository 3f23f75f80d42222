#!/usr/bin/python3
"""strace as the judge of the steady state: system calls per packet, for every link.

An emulated radio and a host stream over a veth pair, first to the host (`rx`), then to the radio
(`tx`); strace counts the system calls of either process, all threads, for ten seconds in the middle,
and the interface counts the packets. To the host twice:

  as links wait by default   on a machine so idle that every packet wakes somebody, a packet costs a
                             wait and a transfer, and its share of a wake-up and of a write to the file
  spinning                   the host's thread and user have a CPU each and never sleep: a packet
                             costs its share of a credit report and of a write to the file, whose
                             thread sleeps, and nothing to be received (on one CPU they would yield
                             it to each other)

Where the program is built with DPDK, also over memory that both share (vhost with virtio-user, memif), as these links wait
by default.

None of the calls may be of a kind that sets something up: memory, files, threads.

Usage: peers/strace_links.py [--only LINK]
Exit status: 0 agrees, 1 not, 77 skipped because a needed program or right is not there.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import namespace
from common import MILLSTREAM, SHORT, Radio, die_with_parent, skip

OURS, THEIRS = "10.79.0.2", "10.79.0.1"
# Over memory, where no kernel has the addresses. The radio's is also on its loopback, for its management.
OWN, DEVICE = "10.79.1.2", "10.79.1.1"
LINKS = ["udp", "packet:{}", "xdp:{},mode=generic", "xdp:{},mode=native"]
# Links of a host that spins; what the radio sends comes one by one, as from hardware.
THREAD_CPU, USER_CPU = 0, 1
SPINNING = [f"{link},cpu={THREAD_CPU},wait=spin,user_wait=spin" for link in LINKS[1:]]
SINGLY = "udp:gso=off"
# The host's end and the radio's.
DPDK = [("dpdk:virtio_user0,path={folder}/vhost", "dpdk:vhost0,iface={folder}/vhost"),
        ("dpdk:memif1,socket={folder}/memif,socket-abstract=no",
         "dpdk:memif0,role=server,socket={folder}/memif,socket-abstract=no")]
RATE_HZ = 5_000_000
# An Ethernet frame full of samples at an MTU of 1500.
FRAME_BYTES = 1514
PACKET_SAMPLES = 364
TRACE_S = 4 if SHORT else 10
# A wait, a transfer, a wake-up.
CALLS_MAX = 3
# Its share of a credit report and of a write of 64 KiB to the file: 0.07 were seen. How often the
# file's thread sleeps in between, and is woken, is the scheduler's affair: 0.08 to 0.32 a packet.
SPINNING_CALLS_MAX = 0.2
# To receive and to wait for what is to be received: next to nothing for who spins.
RECEIVING = {"poll", "ppoll", "epoll_wait", "epoll_pwait", "recvmmsg", "recvmsg", "recvfrom", "read"}
SPINNING_RECEIVING_MAX = 0.02
# Waiting, transferring, and looking at the clock.
STEADY = {"poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_ctl",
          "recvmmsg", "sendmmsg", "recvmsg", "sendmsg", "recvfrom",
          "sendto", "read", "write", "futex", "clock_nanosleep", "nanosleep", "clock_gettime",
          "sched_yield", "getsockopt", "restart_syscall", "accept4", "pwrite64", "writev",
          # How precisely a thread sleeps.
          "prctl",
          "lseek"}


def trace(pid, path):
    """Starts strace on every thread of a process."""
    return subprocess.Popen(["strace", "-c", "-f", "-o", path, "-p", str(pid)],
                            stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)


def counts(path):
    """System calls by name from strace's summary."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            match = re.match(r" *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", line)
            if match and match[2] != "total":
                found[match[2]] = int(match[1])
    return found


def passed(way):
    """Packets with samples that passed our side, by their bytes: the kernel counts trains as one."""
    shown = subprocess.run(["ip", "-s", "-j", "link", "show", "peer0"], capture_output=True,
                           check=True)
    return json.loads(shown.stdout)[0]["stats64"][way]["bytes"] / FRAME_BYTES


def passed_memory(way, folder):
    """The same over memory: what the host has written. What the radio takes is counted at its end: by the clock until then."""
    if way == "tx":
        return time.monotonic() * RATE_HZ / PACKET_SAMPLES
    file = os.path.join(folder, "x.sc16.part")
    return os.path.getsize(file) / 4 / PACKET_SAMPLES if os.path.exists(file) else 0


def wait_for_stream(host, passed_now):
    """Until packets pass, and a while longer."""
    deadline, first = time.monotonic() + 20, passed_now()
    while passed_now() - first < 1000:
        if host.poll() is not None or time.monotonic() > deadline:
            host.kill()
            sys.exit(f"nothing streams: {host.communicate()[1]}")
        time.sleep(0.1)
    time.sleep(0.5)


def check(name, who, calls, packets, spins):
    """Prints and judges one process."""
    total = sum(calls.values())
    often = ", ".join(f"{call} {count}" for call, count in
                      sorted(calls.items(), key=lambda item: -item[1])[:4])
    print(f"{name:42} {who:6} {total / packets:6.3f} {packets:9.0f}  {often}", flush=True)
    strange = {call: count for call, count in calls.items() if call not in STEADY}
    if not calls or total >= CALLS_MAX * packets or sum(strange.values()) > packets // 1000:
        sys.exit(f"{name}, {who}: not a steady state ({CALLS_MAX} calls a packet at most): {calls}")
    awake = total - calls.get("futex", 0)
    if spins and awake >= SPINNING_CALLS_MAX * packets:
        sys.exit(f"{name}, {who}: {SPINNING_CALLS_MAX} calls a packet at most, beside wake-ups: {calls}")
    receiving = sum(count for call, count in calls.items() if call in RECEIVING)
    if spins and receiving > SPINNING_RECEIVING_MAX * packets:
        sys.exit(f"{name}, {who}: it spins, and yet calls the system to receive: {calls}")


def host_command(link, way, folder):
    """The host's side of a stream."""
    addr = DEVICE if link.startswith("dpdk") else THEIRS
    args = ["--args", f"addr={addr},link={link.format('peer0')}", "--rate", str(RATE_HZ)]
    if way == "rx":
        return [MILLSTREAM, "rx", *args, "--out", os.path.join(folder, "x.sc16"), "--force"]
    recording = os.path.join(folder, "tx.sc16")
    with open(recording, "wb") as file:
        file.write(bytes(4 * RATE_HZ))
    return [MILLSTREAM, "tx", *args, "--in", recording, "--repeat", "0"]


def check_link(link, device_link, folder, way):
    """One link at the host and one at the radio, with samples on their way to the host or from it."""
    spins, shared = link in SPINNING, link.startswith("dpdk")
    for name in ("vhost", "memif", "x.sc16", "x.sc16.part"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, name))
    passed_now = (lambda: passed_memory(way, folder)) if shared else (lambda: passed(way))
    with namespace.Neighbour(["sleep", "infinity"], OURS, THEIRS, subprocess.DEVNULL) as neighbour:
        inside = ["nsenter", "--net", "--target", str(neighbour.process.pid)]
        if shared:
            namespace.ip("link", "set", "lo", "up", pid=neighbour.process.pid)
            namespace.ip("address", "add", f"{DEVICE}/32", "dev", "lo", pid=neighbour.process.pid)
            namespace.ip("route", "replace", f"{DEVICE}/32", "via", THEIRS)
        # It waits for the traced programs.
        with Radio("--rx-antenna", "ramp", "--link", device_link.format("device0"), "--rx-buffer-samples",
                   str(1 << 26), addr=DEVICE if shared else THEIRS, inside=inside) as radio:
            pinned = ["taskset", "--cpu-list", str(USER_CPU)] if spins else []
            host = subprocess.Popen(
                [*pinned, *host_command(link, way, folder)], stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
            began = time.monotonic()
            wait_for_stream(host, passed_now)
            if shared:
                # DPDK's environment starts in about two seconds.
                time.sleep(4)
            traced = [("host", host.pid)] if spins else [("radio", radio.process.pid), ("host", host.pid)]
            before = passed_now()
            tracers = [(who, trace(pid, os.path.join(folder, who))) for who, pid in traced]
            time.sleep(TRACE_S)
            for _, tracer in tracers:
                tracer.send_signal(signal.SIGINT)
                tracer.wait(10)
            packets = passed_now() - before
            host.send_signal(signal.SIGINT)
            said = host.communicate(timeout=20)[1]
        if host.returncode not in (0, 130, -signal.SIGINT):
            sys.exit(f"millstream {way} over {link} ended with {host.returncode}: {said}")
    if shared and way == "tx":
        # The share of the traced time; the start counts as time of the stream.
        packets = radio.counters["tx_packets"] * TRACE_S / (time.monotonic() - began)
    if packets < RATE_HZ // 1000:
        sys.exit(f"{link}: {packets:.0f} packets are no stream: {said}")
    for who, _ in traced:
        shown = link.format("IF") if not shared else link.split(",", maxsplit=1)[0]
        check(f"{way} {shown}", who, counts(os.path.join(folder, who)), packets, spins)


def over_memory(folder):
    """The links of DPDK, with their addresses; none where the program is built without it."""
    probe = subprocess.run([MILLSTREAM, "host", "net", "links"], capture_output=True, text=True, check=False)
    if "this build is without it" in probe.stdout:
        print("not traced: dpdk (the program is built without it)")
        return []
    ends = [[end.format(folder=folder) for end in pair] for pair in DPDK]
    return [(f"{ours},address={OWN}/24,udp_checksum=off,mtu=1500",
             f"{theirs},address={DEVICE}/24,udp_checksum=off,mtu=1500,full=wait")
            for ours, theirs in ends]


def main():
    """All links."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="part of a link")
    options = parser.parse_args()
    if shutil.which("strace") is None:
        skip("no strace (Debian package strace)")
    if os.geteuid() != 0:
        skip("AF_XDP and AF_PACKET need root")
    namespace.enter()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        print(f"{'link':42} {'who':6} {'calls':>6} {'packets':>9}  most often", flush=True)
        for link in LINKS + SPINNING:
            if options.only in link:
                check_link(link, SINGLY if link in SPINNING else link, folder, "rx")
        for link in LINKS:
            if options.only in link:
                check_link(link, link, folder, "tx")
        for ours, theirs in over_memory(folder):
            for way in ("rx", "tx"):
                if options.only in ours:
                    check_link(ours, theirs, folder, way)
    print("agreed: nothing is set up in the steady state")


if __name__ == "__main__":
    main()
