#!/usr/bin/env python3
"""A `lab run` that waits for a quiet machine, beside what tcpdump sees on the wire.

Two network namespaces and a veth pair, which stands for the hardware; the plan names it. While ping
has the wire, a run with little patience ends with the interface's name and measures nothing, and one
with more of it waits. Only when ping has ended and the wire was silent for a second the run starts;
the capture holds no packet but the run's own in the windows of its samples.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import namespace
from common import LABORATORY, die_with_parent, skip
from namespace import ip

INSIDE = "MILLSTREAM_PEER_MOUNTS"
OURS, THEIRS = "10.9.0.1", "10.9.0.2"
FOREIGN = "10.9.1.2"
STARTS, COUNT = 2, 40
PLAN = f"""
name = "quiet"
restarts = {STARTS}
samples = 1
quiet_s = PATIENCE
quiet_interfaces = ["card0"]
quiet_packets_per_s = 0.0
quiet_cpu_share = 1.0      # others may work here: this is about packets
measurement = [{{ name = "udp", args = ["latency", "udp", "--interface", "card0", "--peer",
  "card1@quiet", "--only", "kernel UDP", "--count", "{COUNT}", "--repeat", "{{samples}}"] }}]
"""


def enter():
    """Namespaces for the network and for mounts, in which /sys shows that network."""
    if os.geteuid() != 0:
        skip("joining a named network namespace needs root")
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2:
        skip("`latency udp` wants two CPUs")
    namespace.enter()
    if os.environ.get(INSIDE):
        return
    os.environ[INSIDE] = "1"
    mounts = "mount -t sysfs none /sys && mkdir -p /run/netns && mount -t tmpfs none /run/netns"
    os.execvp("unshare", ["unshare", "--mount", "sh", "-c", mounts + ' && exec "$@"', "sh",
                          sys.executable, *sys.argv])


def wire():
    """card0 here and card1 in the namespace `quiet`; neither says anything by itself."""
    ip("netns", "add", "quiet")
    ip("link", "add", "card0", "type", "veth", "peer", "name", "card1", "netns", "quiet")
    hardware = {}
    for name, where in [("card0", []), ("card1", ["-n", "quiet"])]:
        inside = ["ip", "netns", "exec", "quiet"] if where else []
        setting = f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6"
        subprocess.run([*inside, "sh", "-c", f"[ ! -e {setting} ] || echo 1 > {setting}"],
                       check=True)
        last = OURS[-1] if not where else THEIRS[-1]
        for net in ["10.9.0", "10.9.1"]:
            ip(*where, "addr", "add", f"{net}.{last}/24", "dev", name)
        ip(*where, "link", "set", name, "up")
        shown = subprocess.run(["ip", *where, "-json", "link", "show", "dev", name],
                               capture_output=True, text=True, check=True)
        hardware[last] = json.loads(shown.stdout)[0]["address"]
    # Neighbours that are known are not asked for.
    for name, where, other in [("card0", [], "2"), ("card1", ["-n", "quiet"], "1")]:
        for net in ["10.9.0", "10.9.1"]:
            ip(*where, "neigh", "replace", f"{net}.{other}", "lladdr", hardware[other], "nud",
               "permanent", "dev", name)


class Capture:
    """tcpdump at the far end of the wire."""

    def __init__(self, folder):
        self.path = folder / "wire.pcap"
        command = ["ip", "netns", "exec", "quiet", "tcpdump", "-i", "card1", "-n", "-U",
                   "--immediate-mode", "-B", "8192", "-Z", "root", "-w", str(self.path)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_parent)
        line = self.process.stderr.readline()
        assert "listening" in line, line

    def packets(self):
        """Ends it: the time of each packet, and whether it is the run's own."""
        self.process.terminate()
        said = self.process.communicate()[1]
        assert "0 packets dropped by kernel" in said, said
        shown = subprocess.run(["tcpdump", "-n", "-tt", "-r", str(self.path)],
                               capture_output=True, text=True, check=True).stdout
        own = [f"IP {one}." for one in (OURS, THEIRS)]
        return [(float(line.split()[0]), ": UDP" in line and any(start in line for start in own))
                for line in shown.splitlines()]


def ping():
    return subprocess.Popen(["ping", "-q", "-n", "-i", "0.01", FOREIGN],
                            stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)


def lab(folder, patience, records):
    plan = folder / f"{records}.toml"
    plan.write_text(PLAN.replace("PATIENCE", str(patience)))
    command = [LABORATORY, "lab", "run", plan, "--no-store", "--records", folder / records]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=die_with_parent)


def windows(path):
    """The samples' windows, of which the records know the second of the beginning."""
    for line in path.read_text().splitlines():
        measured = json.loads(line)["measured"]
        begin = datetime.fromisoformat(measured["started"].replace("Z", "+00:00")).timestamp()
        yield begin, begin + 1 + measured["seconds"]


def main():
    for program, package in [("tcpdump", "tcpdump"), ("ping", "iputils-ping")]:
        if subprocess.run(["sh", "-c", f"command -v {program}"], stdout=subprocess.DEVNULL,
                          check=False).returncode != 0:
            skip(f"no {program} (Debian package {package})")
    enter()
    wire()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture, foreign = Capture(folder), ping()
        impatient = lab(folder, 2, "none")
        said = impatient.communicate(timeout=60)[1]
        assert impatient.returncode == 1 and "not quiet" in said and "(mostly card0)" in said, said
        assert not (folder / "none").read_text(), "it measured beside others"
        patient = lab(folder, 120, "records")
        time.sleep(3)
        assert patient.poll() is None and not (folder / "records").read_text(), "it did not wait"
        foreign.terminate()
        foreign.wait()
        said = patient.communicate(timeout=120)
        assert patient.returncode == 0, said
        packets = capture.packets()
        spans = list(windows(folder / "records"))
    own = [at for at, is_own in packets if is_own]
    others = [at for at, is_own in packets if not is_own]
    assert len(others) > 300 and len(own) >= STARTS * 2 * COUNT, (len(others), len(own))
    silence = own[0] - others[-1]
    assert silence >= 1, f"the run began {silence:.3f} s after the last foreign packet"
    assert len(spans) >= STARTS
    disturbed = [at for at in others for begin, end in spans if begin <= at <= end]
    assert not disturbed, f"{len(disturbed)} foreign packets in the windows of {len(spans)} samples"
    print(f"{len(others)} packets of others, then {silence:.2f} s of silence; "
          f"{len(spans)} samples with {len(own)} packets of their own and none of others")


if __name__ == "__main__":
    main()
