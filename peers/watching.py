"""What a watcher should find: captures on both ends of a wire, read packet by packet, and the kernel's own counters.

Nothing here is shared with the account that it judges.
"""

import collections
import ctypes
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
# A hop's name for what a watcher says, in the order of the receive direction.
HOPS = ["radio", "wire", "card", "backlog", "stack", "socket", "program", "send_queue"]
# Where packets are lost, and not time.
COUNTED = {"wire", "backlog", "socket", "send_queue"}
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
    """A flow's packets by their numbers without a wrap, and what is missing among them."""

    def __init__(self, packets):
        self.by_number, self.duplicates, self.reordered = {}, 0, 0
        self.ends = sum(packet.ends for packet in packets)
        last = None
        for packet in packets:
            if last is None:
                number = packet.seq
            else:
                step = (packet.seq - last & 0xFFFF)
                step -= (step >= 1 << 15) << 16
                number = last + step
            if number in self.by_number:
                self.duplicates += 1
            else:
                self.reordered += last is not None and number < last
                self.by_number[number] = packet
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


def queue_dropped(interface, inside=()):
    """Packets that the queueing disciplines of an interface dropped."""
    said = subprocess.run([*inside, "tc", "-s", "-j", "qdisc", "show", "dev", interface],
                          capture_output=True, text=True, check=True).stdout
    return sum(one.get("drops", 0) for one in json.loads(said) if one.get("root"))


def check_socket_drops(since):
    """`ss` counts as many drops at this network's sockets as the kernel's table has since then."""
    while True:
        before = udp_counters()["RcvbufErrors"]
        said = subprocess.run(["ss", "-uanmH"], capture_output=True, text=True, check=True).stdout
        if before == udp_counters()["RcvbufErrors"]:
            break
    drops = sum(map(int, re.findall(r"skmem:\(.*,d(\d+)\)", said)))
    if drops != before - since:
        raise Void(f"ss counts {drops} drops at sockets, /proc/net/snmp {before - since}")


def shrink_sockets(pid, size):
    """Gives every UDP socket of a process a receive buffer of `size` bytes; their number."""
    process, done = os.pidfd_open(pid), 0
    libc = ctypes.CDLL(None)
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


def of_radio(key):
    """Whether a flow comes from the radio."""
    return key[0].endswith(f":{CHDR_PORT}")


class Truth:
    """What was lost where, by both captures and by counters."""

    def __init__(self, near, far, counters, faults, joins):
        self.joins = joins
        self.near = {key: Numbered(packets) for key, packets in near.flows().items()}
        self.far = {key: Numbered(packets) for key, packets in far.flows().items()}
        self.counters, self.faults = counters, faults
        self.socket = 0
        # What the queue dropped with nothing behind it, and packets that are no data.
        self.queue_tail = 0

    def hits(self, *words):
        """How often faults of the emulator struck whose text begins so."""
        found = self.faults["results"]["faults"]
        return sum(fault["hit"] for fault in found if fault["fault"].startswith(" ".join(words)))

    def begin(self, flow):
        """The number from which on a flow counts. tcpdump may lose a packet while it sets its filter."""
        return sorted(flow.by_number)[:10 if self.joins else 1][-1]

    def missing(self, from_radio):
        """Packets that are missing in the numbers at the program's interface."""
        return sum(count for key, flow in self.near.items() if of_radio(key) == from_radio
                   for first, count in flow.missing() if first > self.begin(flow))

    def on_the_way(self, from_radio):
        """Packets that left at one end of the wire and did not come to the taps of the other."""
        sent, came = (self.far, self.near) if from_radio else (self.near, self.far)
        found = 0
        for key in sent.keys() & came.keys():
            if of_radio(key) == from_radio:
                there = came[key].by_number
                begin, end = self.begin(came[key]), max(there)
                found += sum(begin < number < end for number in sent[key].by_number.keys() - there.keys())
        return found

    def hops(self):
        """Each hop that lost something: how many packets, or events."""
        counters, found = self.counters, collections.Counter()
        # A tap on receiving lies behind the backlog, one on sending behind the queue.
        found["backlog"] = self.on_the_way(True)
        found["wire"] = self.missing(True) - found["backlog"] + self.lost_sent() - self.missing(False)
        found["socket"] = self.socket
        found["send_queue"] = self.missing(False)
        stalled = counters["rx_overruns"] - counters["rx_overruns_own"]
        found["wire" if self.lost_reports() else "program"] += stalled
        found["program"] += counters["tx_late_packets"] + counters["rx_late_commands"]
        if not self.lost_sent():
            found["program"] += counters["tx_underflows"]
        found["radio"] = counters["rx_overruns_own"] + self.hits("clock_jump")
        return +found

    def lost_sent(self):
        """Packets of the program that did not come to the radio, which then may have had no samples in time."""
        return self.missing(False) + self.on_the_way(False) + self.hits("lose to_device data")

    def excused(self):
        """Hops that may be named, too: what is lost elsewhere may look like this."""
        return ({"radio"} if self.lost_reports() else set()) | ({"program"} if self.lost_sent() else set())

    def lost_reports(self):
        """Credit that did not come to the radio. From the program's side the radio may as well not have heeded it."""
        return self.hits("lose to_device status")

    def disagreements(self, account, is_cut):
        """Where an account is wrong. Where packets are cut off, ends of bursts within trains are not seen."""
        ours = {(flow["source"], flow["destination"], flow["epid"]): (number, flow)
                for number, flow in enumerate(account["flows"])}
        if set(ours) != set(self.near):
            yield f"flows {sorted(ours)}, not {sorted(self.near)}"
        for key, flow in self.near.items():
            number, said = ours.get(key, (None, None))
            if said is None:
                continue
            gaps = [gap for gap in account["gaps"] if gap["flow"] == number]
            yield from flow_disagreements(key, flow, said, gaps, is_cut)
        told = sum(one["event"] == "overrun" for one in account["messages"])
        if told != self.counters["rx_overruns"] and not self.joins:
            yield f"{told} overruns, the radio counted {self.counters['rx_overruns']}"
        # The last ones may be lost with nothing behind them.
        behind = sum(gap["packets"] for gap in account["gaps"] if gap["place"] == "behind")
        hits = self.hits("lose to_device data")
        if not hits - 3 <= behind <= hits:
            yield f"{behind} packets behind the capture, the radio lost {hits}"


def flow_disagreements(key, flow, said, gaps, is_cut):
    """The same for one flow."""
    for name, want in [("packets", len(flow.by_number) + flow.duplicates), ("duplicates", flow.duplicates),
                       ("reordered", flow.reordered), ("bursts", flow.ends),
                       ("lost_before", sum(count for _, count in flow.missing()))]:
        if said[name] != want and not (name == "bursts" and is_cut):
            yield f"{key}: {said[name]} {name}, not {want}"
    before = [gap["packets"] for gap in gaps if gap["place"] == "before"]
    holes = [count for _, count in flow.missing()]
    if before != holes:
        yield f"{key}: gaps of {before} packets, not {holes}"
    not_sent = [gap["samples"] for gap in gaps if gap["place"] == "sender" and not gap["overrun"]]
    jumps = [jump for _, jump, ends in flow.jumps(1) if not ends and jump > 0]
    if len(holes) == 0 and not_sent != jumps:
        yield f"{key}: {not_sent} samples not sent, not {jumps}"
    overruns = [gap["samples"] for gap in gaps if gap["overrun"]]
    ended = [jump for _, jump, ends in flow.jumps(1) if ends]
    if len(holes) == 0 and not collections.Counter(overruns) <= collections.Counter(ended):
        yield f"{key}: overruns of {overruns} samples, times jump by {ended}"


def judged(truth, losses):
    """A word for the watcher's verdicts, and what is not right with them."""
    lost, said, word = truth.hops(), collections.Counter(), "right"
    problems, named, between = [], set(), set()
    excused = truth.excused()
    for loss in losses:
        if loss["kind"] == "not_captured":
            continue
        reach = HOPS[HOPS.index(loss["hop"]):HOPS.index(loss["until"]) + 1]
        # Of the hops between which it lies, the one that lost something.
        said[next((hop for hop in reach if hop in lost), loss["hop"])] += loss["packets"]
        between.update(reach)
        # Two neighbours are as near as this side of the wire can tell.
        if loss["certainty"] != "between" or len(reach) == 2:
            named.update(reach)
        if not set(reach) & {*lost, *excused}:
            how = "perhaps" if loss["certainty"] == "perhaps" else "wrong"
            problems.append((how, f"{loss['certainty']} {loss['hop']} to {loss['until']}: {loss['kind']} "
                             f"{loss['packets']} packets: {' '.join(loss['evidence'])}"))
    for hop, count in lost.items():
        if hop not in named:
            problems.append(("perhaps" if hop in between else "not found", f"{count} at {hop}"))
        elif hop in COUNTED and not truth.lost_reports():
            most = count + (truth.queue_tail if hop == "send_queue" else 0)
            if not count <= said[hop] <= most:
                problems.append(("count", f"{said[hop]} at {hop}, not {count} to {most}"))
    for how in ("perhaps", "count", "not found", "wrong"):
        word = how if any(one == how for one, _ in problems) else word
    return word, [f"{how}: {what}" for how, what in problems]


def main():
    """For a look by hand: what a capture holds, as this module reads it."""
    capture = Capture.__new__(Capture)
    capture.path = sys.argv[1]
    for key, packets in capture.flows().items():
        flow = Numbered(packets)
        print(key, len(packets), "missing", flow.missing()[:10], "jumps", flow.jumps(1)[:10])


if __name__ == "__main__":
    main()
