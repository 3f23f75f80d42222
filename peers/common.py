"""Shared by the Python peers: serves an emulated radio on a free loopback address.

As a program: `common.py free-address` prints an address whose radio ports are free.
"""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Among all peers (run-all.sh), one that could take minutes does less.
SHORT = "MILLSTREAM_PEER_LIMIT_S" in os.environ
# The seconds that a peer may take.
LIMIT_S = int(os.environ.get("MILLSTREAM_PEER_LIMIT_S", "3600"))
CARGO = os.environ.get("CARGO", "cargo")


def built(name):
    """The path of something in cargo's folder of build results; the usual one where cargo does not say."""
    asked = subprocess.run([os.path.join(ROOT, "scripts/target.sh")], capture_output=True, text=True, check=False)
    return os.path.join(asked.stdout.strip() or os.path.join(ROOT, "target"), name)


MILLSTREAM = os.environ.get("MILLSTREAM") or built("release/millstream")
# The laboratory lies beside it.
LABORATORY = os.environ.get("MILLSTREAM_LAB") or f"{MILLSTREAM}-lab"
# Debian's Python, which sees Debian's modules.
PYTHON = "/usr/bin/python3"
SKIPPED = 77
# Discovery, remote procedure calls, CHDR.
PORTS = [(socket.SOCK_DGRAM, 49600), (socket.SOCK_STREAM, 49601), (socket.SOCK_DGRAM, 49153)]
PR_SET_PDEATHSIG = 1  # prctl(2)
# Where Debian's uhd-host keeps its example programs.
UHD_EXAMPLES = ["/usr/libexec/uhd/examples", "/usr/lib/uhd/examples"]


def example(package, name, *options):
    """The command of one of our example programs: cargo builds it with its options, or make test has built it."""
    if "MILLSTREAM_BUILT" not in os.environ:
        return [CARGO, "run", "--quiet", *options, "-p", package, "--example", name, "--"]
    program = built(f"debug/examples/{name}")
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is missing: run make test, or unset MILLSTREAM_BUILT")
    return [program]


def skip(reason):
    """Ends the peer as not applicable here."""
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def uhd_example(name):
    """Path of a UHD example program; skips the peer when it is not installed."""
    path = shutil.which(name, path=os.pathsep.join(UHD_EXAMPLES + [os.environ.get("PATH", "")]))
    if path is None:
        skip(f"no UHD example {name} (Debian package uhd-host)")
    return path


def uhd_output(name, *options, timeout_s=60):
    """What a UHD example program printed, both streams; ends the peer when the program fails."""
    done = subprocess.run([uhd_example(name), *options], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        sys.exit(f"{name} {' '.join(options)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def is_free(address):
    """Whether a radio can be served at the address."""
    for kind, port in PORTS:
        with socket.socket(socket.AF_INET, kind) as probe:
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True


def free_addresses(count=1):
    """127.x addresses in a row whose radio ports are free; other runs start elsewhere."""
    start = os.getpid() % 200
    for step in range(200):
        first = 1 + (start + step) % 200
        addresses = [f"127.0.77.{last}" for last in range(first, first + count)]
        if all(map(is_free, addresses)):
            return addresses
    raise RuntimeError("no address in 127.0.77.1 to 127.0.77.200 has its radio ports free")


def free_port():
    """A TCP port of this machine that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(what, check, patience_s=60, pause_s=0.05):
    """Waits until `check` returns something true, and returns that."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        time.sleep(pause_s)
    return sys.exit(f"not within {patience_s} s: {what}")


def first_difference(got, want):
    """None, or a text that says at which sample of 4 bytes the two differ first."""
    if got == want:
        return None
    at = next(k for k, (a, b) in enumerate(zip(got, want)) if a != b) // 4
    show = [data[4 * at:4 * at + 4].hex() for data in (got, want)]
    return f"sample {at} is {show[0]}, not {show[1]}"


def die_with_parent():
    """For a child: it is killed when the peer ends, also when the peer itself was killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def beside(command, cpu, policy, priority=0):
    """A process on a CPU, of a scheduling class; it ends with this one."""
    def prepare():
        os.sched_setaffinity(0, {cpu})
        os.sched_setscheduler(0, policy, os.sched_param(priority))
        die_with_parent()
    return subprocess.Popen(command, preexec_fn=prepare)


class Radio:
    """Emulated radios of one process for the length of a `with` block; it has to end cleanly.

    `addr` is the address of the only or first one, `addrs` are all. What they counted together is
    in `counters` once they have ended. Where they run elsewhere, `addr` says at which address and
    `inside` is the command that gets there.
    """

    def __init__(self, *options, count=1, addr=None, inside=()):
        if not os.access(MILLSTREAM, os.X_OK):
            skip(f"no {MILLSTREAM} (run make build)")
        self.addrs = free_addresses(count) if addr is None else [addr]
        self.addr = self.addrs[0]
        self.command = [*inside, MILLSTREAM, "sim", "radio", "--json", "--addr", self.addr,
                        "--radios", str(count), *options, *(["--force"] if "--tx-out" in options else [])]
        self.counters = {}

    def __enter__(self):
        self.log, self.document = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            self.command, stdout=self.document, stderr=self.log, stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent)
        deadline = time.monotonic() + 20
        while not any(line.startswith("ready") for line in self.log_lines()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError("the radio did not become ready:\n" + "".join(self.log_lines()))
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError("the radio did not end within 10 s of SIGTERM") from None
        if status != 0:
            raise RuntimeError(f"the radio ended with {status}:\n" + "".join(self.log_lines()))
        self.document.seek(0)
        self.counters = json.load(self.document)["results"]["counters"]

    def log_lines(self):
        """What it wrote to standard error so far."""
        # A duplicate of the descriptor would share the writer's position: read by path.
        with open(f"/proc/self/fd/{self.log.fileno()}", encoding="utf-8") as log:
            return log.readlines()

    def cpu_seconds(self):
        """Processor time it has used so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    if sys.argv[1:] != ["free-address"]:
        sys.exit("usage: common.py free-address")
    print(free_addresses()[0])
