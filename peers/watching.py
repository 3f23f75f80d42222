"""What a watcher should find: captures on both ends of a wire, read packet by packet, and the kernel's own counters.

Nothing here is shared with the account that it judges.
"""

import collections
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

from common import die_with_parent

CHDR_PORT = 49153
DATA, TIMED = 6, 7
PCAP_MAGIC = 0xA1B2C3D4
ETHERNET, IP, UDP = 14, 20, 8
SC16 = 4
# pidfd_getfd(2) has this number on every architecture.
PIDFD_GETFD = 438

Packet = collections.namedtuple("Packet", "at_s seq ticks samples ends")


class Void(Exception):
    """A case that says nothing: the machine or a tool of the harness failed, not the watcher."""


class Capture:
    """tcpdump on an interface, in the network namespace that `inside` leads to."""

    def __init__(self, interface, path, snaplen, inside=()):
        self.path = path
        self.process = subprocess.Popen(
            [*inside, "tcpdump", "-i", interface, "-n", "-s", str(snaplen), "-B", "65536", "-Z", "root",
             "-w", path, "udp"], stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        line = self.process.stderr.readline()
        if "listening" not in line:
            raise Void(f"tcpdump does not begin: {line}")

    def end(self):
        """Ends it. It has to have everything."""
        # The kernel hands over what is in an unfinished block within a second.
        time.sleep(1.2)
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=30)[1]
        if not re.search(r"^0 packets dropped by kernel", said, re.MULTILINE):
            raise Void(f"tcpdump on {self.path} missed packets: {said.splitlines()[-1:]}")

    def flows(self):
        """Every data packet of every flow: (source, destination, endpoint) to a list, in the order of the capture."""
        found = collections.defaultdict(list)
        with open(self.path, "rb") as file:
            data = file.read()
        if len(data) < 24 or struct.unpack_from("<I", data)[0] != PCAP_MAGIC:
            raise Void(f"{self.path} is no capture")
        at = 24
        while at + 16 <= len(data):
            seconds, micros, kept, _ = struct.unpack_from("<IIII", data, at)
            frame = data[at + 16:at + 16 + kept]
            at += 16 + kept
            take(found, seconds + micros / 1e6, frame)
        return found


def take(found, at_s, frame):
    """The data packets of a frame: one, or a train that the kernel has joined."""
    if len(frame) < ETHERNET + IP + UDP + 8 or frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_UDP:
        return
    ip_len = 4 * (frame[14] & 15)
    begin = ETHERNET + ip_len
    if struct.unpack_from(">H", frame, 20)[0] & 0x1FFF:
        return
    source, destination, udp_length = struct.unpack_from(">HHH", frame, begin)
    if CHDR_PORT not in (source, destination):
        return
    key = (f"{socket.inet_ntoa(frame[26:30])}:{source}", f"{socket.inet_ntoa(frame[30:34])}:{destination}")
    at, end = begin + UDP, begin + udp_length
    while at + 8 <= end:
        if at + 8 > len(frame):
            raise Void("a capture for the truth has cut a train off")
        header = int.from_bytes(frame[at:at + 8], "little")
        ticks = int.from_bytes(frame[at + 8:at + 16], "little")
        kind, length = header >> 53 & 7, header >> 16 & 0xFFFF
        if kind not in (DATA, TIMED) or length < 8:
            return
        overhead = 16 if kind == TIMED else 8
        found[(*key, header & 0xFFFF)].append(Packet(
            at_s, header >> 32 & 0xFFFF, ticks if kind == TIMED else None,
            (length - overhead) // SC16, bool(header >> 57 & 1)))
        at += -(-length // 8) * 8


class Numbered:
    """A flow's packets by their numbers without a wrap, and what is missing among them.

    A set-up begins the numbers anew; it shows as a number 0 far from what was expected.
    """

    def __init__(self, packets):
        self.by_number, self.duplicates, self.reordered, self.restarts = {}, 0, 0, 0
        base, last = 0, None
        for packet in packets:
            if last is None:
                number = packet.seq
            else:
                step = (packet.seq - last & 0xFFFF)
                step -= (step >= 1 << 15) << 16
                number = last + step
            at = base + number
            if at in self.by_number:
                self.duplicates += 1
            else:
                self.reordered += last is not None and number < last
                self.by_number[at] = packet
            last = number if last is None else max(last, number)

    def missing(self):
        """Holes: (first number, count), each between packets that are there."""
        order = sorted(self.by_number)
        return [(a + 1, b - a - 1) for a, b in zip(order, order[1:]) if b - a > 1]

    def jumps(self, tick):
        """Time that is missing between neighbours in the numbers within a burst, in samples of `tick` ticks."""
        order = sorted(self.by_number)
        found = []
        for a, b in zip(order, order[1:]):
            one, other = self.by_number[a], self.by_number[b]
            if b - a == 1 and one.ticks is not None and other.ticks is not None:
                jump = (other.ticks - one.ticks) // tick - one.samples
                if jump:
                    found.append((b, jump, one.ends))
        return found


def udp_counters():
    """`Udp:` of /proc/net/snmp of this network namespace."""
    with open("/proc/net/snmp", encoding="ascii") as snmp:
        names, values = [line.split()[1:] for line in snmp if line.startswith("Udp:")]
    return dict(zip(names, map(int, values)))


def backlog_dropped():
    """Packets that the backlogs of all CPUs had no room for, of the whole machine."""
    with open("/proc/net/softnet_stat", encoding="ascii") as lines:
        return sum(int(line.split()[1], 16) for line in lines)


def queue_dropped(interface, inside=()):
    """Packets that the queueing disciplines of an interface dropped."""
    said = subprocess.run([*inside, "tc", "-s", "-j", "qdisc", "show", "dev", interface],
                          capture_output=True, text=True, check=True).stdout
    return sum(one.get("drops", 0) for one in json.loads(said) if one.get("root"))


def shrink_sockets(pid, size):
    """Gives every UDP socket of a process a receive buffer of `size` bytes; their number."""
    process, done = os.pidfd_open(pid), 0
    libc = __import__("ctypes").CDLL(None, use_errno=True)
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if not os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                continue
        except FileNotFoundError:
            continue
        ours = libc.syscall(PIDFD_GETFD, process, int(name), 0)
        if ours < 0:
            continue
        with socket.socket(fileno=ours) as one:
            if one.family == socket.AF_INET and one.type == socket.SOCK_DGRAM:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
                done += 1
    os.close(process)
    return done


def main():
    """For a look by hand: what a capture holds, as this module reads it."""
    capture = Capture.__new__(Capture)
    capture.path = sys.argv[1]
    for key, packets in capture.flows().items():
        flow = Numbered(packets)
        print(key, len(packets), "missing", flow.missing()[:10], "jumps", flow.jumps(1)[:10])


if __name__ == "__main__":
    main()
