"""Anonymous network namespaces for the Python peers: they are gone with the last process in them.

Nothing has to be deleted, so nothing is left behind, whichever way a peer ends.
"""

import os
import subprocess
import sys
import time

from common import die_with_parent, skip

INSIDE = "MILLSTREAM_PEER_NAMESPACE"


def unshare(*options):
    """The command that starts a program in new namespaces; an ordinary user becomes root inside."""
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *as_root, "--net", *options]


def enter():
    """Runs this peer again inside a network namespace; returns where it is in one already."""
    if os.environ.get(INSIDE):
        ip("link", "set", "lo", "up")
        return
    try:
        probe = subprocess.run([*unshare(), "ip", "link"], capture_output=True, text=True,
                               check=False)
    except FileNotFoundError:
        skip("no unshare or ip (Debian packages util-linux and iproute2)")
    if probe.returncode != 0:
        skip(f"network namespaces cannot be made here ({probe.stderr.strip()})")
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*unshare(), sys.executable, *sys.argv])


def ip(*arguments, pid=None):
    """`ip`, in the network namespace of a process or in our own."""
    where = [] if pid is None else ["nsenter", "--net", "--target", str(pid)]
    subprocess.run([*where, "ip", *arguments], check=True)


class Neighbour:
    """A program in a namespace of its own, joined to ours by veth pairs, for a `with` block.

    The first pair has the addresses `ours` and `theirs`; `further` lists those of more pairs.

    It starts when the pair is up. Its namespaces include one for processes: killing it kills all
    that it started. It has no loopback interface, which a simulated device would offer to hosts.
    """

    def __init__(self, command, ours, theirs, log, mtu=1500, further=()):
        self.command, self.pairs = command, [(ours, theirs), *further]
        self.log, self.mtu = log, mtu

    def __enter__(self):
        gate = ["sh", "-c", 'read -r _; exec "$@"', "sh", *self.command]
        self.process = subprocess.Popen(
            [*unshare("--pid", "--fork", "--kill-child"), *gate], stdin=subprocess.PIPE,
            stdout=self.log, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
        pid = self.process.pid
        deadline = time.monotonic() + 10
        while os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino:
            if time.monotonic() > deadline:
                raise RuntimeError("unshare made no network namespace")
            time.sleep(0.01)
        for number, (ours, theirs) in enumerate(self.pairs):
            near, far = f"peer{number}", f"device{number}"
            ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", str(pid))
            for name, address, where in [(near, ours, None), (far, theirs, pid)]:
                ip("addr", "add", f"{address}/24", "brd", "+", "dev", name, pid=where)
                ip("link", "set", name, "mtu", str(self.mtu), "up", pid=where)
        self.process.stdin.write(b"\n")
        self.process.stdin.close()
        return self

    def inside(self):
        """The command that gets to its network."""
        return ["nsenter", "--net", "--target", str(self.process.pid)]

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        # The kernel takes a namespace apart later; the next neighbour may come sooner.
        for number in range(len(self.pairs)):
            subprocess.run(["ip", "link", "del", f"peer{number}"], stderr=subprocess.DEVNULL,
                           check=False)
