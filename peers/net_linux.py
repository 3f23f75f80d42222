#!/usr/bin/python3
"""Linux as judge of our user-space IPv4 host (`millstream host net host`), across a veth pair.

Our host has an address that its kernel does not know; Linux is on the other side. Links `packet`
and `xdp` in each of its modes, with and without VLAN tag, with frames of 1500 and of 9000 bytes.
Everything that a person would try has to work: ping of sizes up to the MTU and 10 000 in a flood,
arping with duplicate detection, nc, sockets; the kernel's own address beside ours goes on
answering. tshark reads what crossed the wire: no malformed packet, no wrong checksum.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
    net_linux.py [LINK...]      only these links, such as packet or xdp:mode=native
"""

import itertools
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import namespace
from common import MILLSTREAM, SHORT, skip
from vlan import Tagger

# Ports that tshark takes for no protocol, whatever the bytes are.
ECHO, CLOSED, SOURCE = 48620, 48621, 48622
VLAN = 42
FLOOD = 10_000
PACKAGES = {"ping": "iputils-ping", "arping": "iputils-arping", "nc": "netcat-openbsd",
            "tcpdump": "tcpdump", "tshark": "tshark"}
IP_UDP, IP_ICMP = 28, 28
# Everything that somebody got wrong. What ICMP quotes are the bytes of Linux, whose checksums may
# have been left to hardware.
WRONG = ("_ws.malformed || ip.checksum.status == \"Bad\" || icmp.checksum.status == \"Bad\""
         " || (udp.checksum.status == \"Bad\" && !icmp) || arp.duplicate-address-detected")


class Wrong(Exception):
    """Both sides disagree."""


def run(*command, status=0, timeout_s=60):
    """What a program printed; it has to end with `status`."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout_s, check=False)
    if done.returncode != status:
        raise Wrong(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Wire:
    """One configuration: a host of ours, Linux, and the pair between them."""

    def __init__(self, link, vlan, mtu, address=None):
        self.link, self.vlan, self.mtu = link, vlan, mtu
        # The kernel on our host's side has .3, our host itself .2, Linux .1.
        self.net = "10.79.0" if vlan else "10.77.0"
        self.ours = address or f"{self.net}.2"
        self.device = "tagged0" if vlan else "peer0"
        self.tagger = None
        self.log = tempfile.TemporaryFile("w+")
        self.neighbour = namespace.Neighbour(self.command(), "10.77.0.1", "10.77.0.3", self.log,
                                             mtu=mtu)

    def command(self):
        """Our host's command line."""
        name, _, options = self.link.partition(":")
        words = ["device0", options, f"address={self.ours}/24",
                 f"vlan={VLAN}" if self.vlan else ""]
        link = f"{name}:{','.join(word for word in words if word)}"
        return [MILLSTREAM, "host", "net", "host", "--json", "--link", link, "--echo-port", str(ECHO)]

    def __enter__(self):
        self.neighbour.__enter__()
        if self.vlan:
            self.tagger = Tagger("peer0", self.device, VLAN, self.mtu)
            namespace.ip("addr", "add", f"{self.net}.1/24", "dev", self.device)
        # A neighbour that is wrong until our host announces itself.
        namespace.ip("neigh", "replace", self.ours, "lladdr", "02:00:00:00:00:99", "dev",
                     self.device, "nud", "stale")
        self.wait_for("ready:")
        return self

    def __exit__(self, *_):
        if self.tagger:
            self.tagger.close()
        self.neighbour.__exit__()
        self.log.close()

    def said(self):
        """What our host wrote so far."""
        with open(f"/proc/self/fd/{self.log.fileno()}", encoding="utf-8") as log:
            return log.read()

    def wait_for(self, word, timeout_s=20):
        """Waits until our host says a word."""
        deadline = time.monotonic() + timeout_s
        while word not in self.said():
            if self.neighbour.process.poll() is not None or time.monotonic() > deadline:
                raise Wrong(f"our host did not say {word!r}:\n{self.said()}")
            time.sleep(0.02)

    def host_pid(self):
        """The process of our host, below `unshare`."""
        pid = self.neighbour.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            return int(children.read().split()[0])

    def end(self):
        """Ends our host in order; its document."""
        os.kill(self.host_pid(), signal.SIGTERM)
        status = self.neighbour.process.wait(10)
        said = self.said()
        if status != 0:
            raise Wrong(f"our host ended with {status}:\n{said}")
        return json.loads(said[said.index("{"):])["results"]


class Capture:
    """tcpdump on the wire for a `with` block."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.process = subprocess.Popen(
            ["tcpdump", "-i", "peer0", "-U", "-B", "65536", "-w", self.path],
            stderr=subprocess.PIPE, text=True)
        if not select.select([self.process.stderr], [], [], 20)[0]:
            raise Wrong("tcpdump does not begin")
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        # The kernel hands over what is in an unfinished block within a second.
        time.sleep(1.5)
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=20)[1]
        lost = re.search(r"(\d+) packets dropped by kernel", said)
        if lost and int(lost[1]):
            raise Wrong(f"the capture lost {lost[1]} packets")


def check_announced(wire):
    """Linux has learnt our host's address from its announcement, without asking."""
    deadline = time.monotonic() + 3
    while "02:00:00:00:00:99" in run("ip", "neigh", "show", wire.ours, "dev", wire.device):
        if time.monotonic() > deadline:
            raise Wrong("the announcement changed nothing in Linux's table")
        time.sleep(0.05)


def check_ping(wire):
    """Every size that fits, byte by byte; none that does not."""
    most = wire.mtu - IP_ICMP
    sizes = {*range(0, 20), *range(20, most, max(most // 40, 1)), most - 1, most}
    for size in sorted(sizes):
        said = run("ping", "-n", "-c", "1", "-W", "3", "-M", "do", "-s", str(size), wire.ours)
        if "1 received" not in said or "wrong data" in said:
            raise Wrong(f"ping of {size} bytes:\n{said}")
    run("ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", str(most + 1), wire.ours, status=1)
    # Two fragments, which are counted and dropped.
    run("ping", "-n", "-c", "1", "-W", "1", "-s", str(most + 1), wire.ours, status=1)
    return len(sizes)


def check_flood(wire, count=FLOOD):
    """Nothing of a flood is lost; packets a second."""
    said = run("ping", "-n", "-q", "-f", "-c", str(count), wire.ours, timeout_s=120)
    if f"{count} received, 0% packet loss" not in said or "duplicates" in said:
        raise Wrong(said)
    return count / (int(re.search(r"time (\d+)ms", said)[1]) / 1000 or 1)


def check_arping(wire):
    """It answers who asks, and who asks whether the address is free."""
    # It counts answers to requests of the kernel, too, and ends with 1 then.
    done = subprocess.run(["arping", "-c", "3", "-w", "5", "-I", wire.device, wire.ours],
                          stdout=subprocess.PIPE, text=True, timeout=20, check=False)
    answers = re.search(r"Received (\d+) response", done.stdout)
    if not answers or int(answers[1]) < 3:
        raise Wrong(done.stdout)
    said = run("arping", "-D", "-c", "2", "-w", "3", "-I", wire.device, wire.ours, status=1)
    if "Unicast reply" not in said:
        raise Wrong(said)
    run("arping", "-D", "-c", "1", "-w", "1", "-I", wire.device, f"{wire.net}.77")


def check_udp(wire):
    """nc, and sockets of every size; a port that nobody has is refused."""
    said = subprocess.run(["nc", "-u", "-w", "1", wire.ours, str(ECHO)], input="by nc\n", text=True,
                          stdout=subprocess.PIPE, timeout=10, check=True).stdout
    if said != "by nc\n":
        raise Wrong(f"nc got {said!r}")
    most = wire.mtu - IP_UDP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.settimeout(3)
        port.bind(("", SOURCE))
        port.connect((wire.ours, ECHO))
        for size in sorted({*range(0, 64), *range(64, most, 97), most - 1, most}):
            # Random bytes look like some protocol to tshark every now and then.
            data = bytes((size + 7 * at) % 251 for at in range(size))
            port.send(data)
            if port.recv(65536) != data:
                raise Wrong(f"another datagram came back than one of {size} bytes")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.settimeout(3)
        port.connect((wire.ours, CLOSED))
        port.send(b"anybody?")
        try:
            raise Wrong(f"a closed port answered {port.recv(65536)!r}")
        except ConnectionRefusedError:
            pass
        except TimeoutError:
            raise Wrong("a closed port was not reported as unreachable") from None


def check_kernel_beside(_wire):
    """The kernel's own address on the same interface goes on answering."""
    run("ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", "10.77.0.3")


def judge_conflict(link):
    """A host with the address that Linux has does not take it, and says so."""
    wire = Wire(link, False, 1500, address="10.77.0.1")
    wire.neighbour.__enter__()
    try:
        status = wire.neighbour.process.wait(15)
        said = wire.said()
    except subprocess.TimeoutExpired:
        raise Wrong(f"a host took the address that Linux has:\n{wire.said()}") from None
    finally:
        wire.__exit__()
    if status == 0 or "in use by another host" not in said:
        raise Wrong(f"a host with Linux's address ended with {status}:\n{said}")
    return f"{link}: an address that Linux has is refused"


def check_capture(wire, path):
    """What crossed the wire, as tshark reads it."""
    mac = "eth.src == " + wire.mac
    # Newer ones look for the trailer of a redundant network in the zeros that fill a short frame.
    options = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "--disable-protocol", "prp"]
    show = ["tshark", "-r", path, *options, "-Y"]
    ours = len(run(*show, mac, timeout_s=120).splitlines())
    wrong = run(*show, f"{mac} && ({WRONG})", timeout_s=120)
    lines = [line for line in wrong.splitlines() if not line.startswith("Running as")]
    if lines:
        detail = run(*show, f"{mac} && ({WRONG})", "-V", timeout_s=120).splitlines()
        lines += [line for line in detail if re.search("incorrect|Bad|Malformed|xpert", line)]
        raise Wrong(f"some of our {ours} packets are wrong:\n" + "\n".join(lines[:20]))
    return ours


def check_counters(wire, results):
    """Our host counted what we did, and nothing bad."""
    stack = results["links"][0]["stack"]
    for name in ["truncated", "bad_header", "bad_ip_checksum", "bad_udp_checksum", "bad_arp",
                 "bad_icmp_checksum", "bad_source", "too_long_to_answer", "arp_conflicts"]:
        if stack[name] != 0:
            raise Wrong(f"our host counted {stack[name]} {name}")
    for name, least in [("fragments", 2), ("echo_requests", FLOOD), ("no_port", 1),
                        ("tx_unreachable", 1), ("tx_arp", 5), ("rx_datagrams", 64)]:
        if stack[name] < least:
            raise Wrong(f"our host counted {stack[name]} {name}, not {least} and more")
    if results["links"][0]["leaked_frames"] or results["ports"][0]["unsent"]:
        raise Wrong(f"{results}")


def judge(link, vlan, mtu, folder):
    """One configuration; its line."""
    path = os.path.join(folder, f"{link.replace(':', '-')}-{vlan}-{mtu}.pcap")
    with Wire(link, vlan, mtu) as wire:
        show = run("nsenter", "--net", "--target", str(wire.host_pid()), "ip", "-j", "link",
                   "show", "device0")
        wire.mac = json.loads(show)[0]["address"]
        check_announced(wire)
        with Capture(path):
            sizes = check_ping(wire)
            rate = check_flood(wire)
            check_arping(wire)
            check_udp(wire)
        check_kernel_beside(wire)
        ours = check_capture(wire, path)
        results = wire.end()
        check_counters(wire, results)
        detail = results["links"][0]["detail"]
    return (f"{link} {'VLAN ' + str(VLAN) if vlan else 'untagged'} MTU {mtu}: {sizes} sizes, "
            f"flood {rate:.0f}/s, {ours} packets of ours right ({detail})")


def main():
    """Every configuration that is asked for."""
    if os.geteuid() != 0:
        skip("raw links need root")
    if not os.access(MILLSTREAM, os.X_OK):
        skip(f"no {MILLSTREAM} (run make build)")
    for program, package in PACKAGES.items():
        if shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            skip(f"no {program} (Debian package {package})")
    namespace.enter()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        links = sys.argv[1:] or ["packet", "xdp:mode=native", "xdp:mode=generic"]
        jobs = [(judge, link, vlan, mtu, folder)
                for link, vlan, mtu in itertools.product(links, [False, True], [1500, 9000])
                if not SHORT or vlan == (mtu == 9000)]
        jobs += [(judge_conflict, link) for link in links]
        for job, *arguments in jobs:
            try:
                print(job(*arguments), flush=True)
            except (Wrong, subprocess.TimeoutExpired) as wrong:
                failed += 1
                print(f"{arguments}: WRONG: {wrong}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
