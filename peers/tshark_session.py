#!/usr/bin/python3
"""A live session of ours, captured by tshark and read by UHD's packet codec (`uhd.chdr`).

tshark records the loopback interface of a network namespace while `millstream rx` receives from
`millstream sim radio`; segmentation offload is off, so that a datagram is a packet. Every datagram of
the CHDR port has to be a packet of exactly its length. Of the samples, all have to be there: the
sequence numbers and times follow each other, the values are those of the antenna's counter. And
the device keeps to its credit: what it sent and the host has not acknowledged stays within the
capacity that the host reported.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import array
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import namespace
from chdr_oracle import DATA_TS, STRC, STRS, read
from common import MILLSTREAM, Radio, skip

RATE_HZ = 4_000_000
# More than the window, so that the device also reports its totals.
SAMPLES = 2_000_003
CHDR_PORT = 49153
RESYNC = 2
FIELDS = ["udp.srcport", "udp.length", "udp.payload"]


class Capture:
    """tshark on the loopback interface for a `with` block."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.process = subprocess.Popen(
            ["tshark", "-Q", "-i", "lo", "-B", "64", "-w", self.path,
             "-f", f"udp port {CHDR_PORT}"],
            stderr=subprocess.PIPE, text=True)
        # The file begins with its header when the capture has begun.
        deadline = time.monotonic() + 20
        while not os.path.exists(self.path) or os.path.getsize(self.path) == 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                skip(f"tshark cannot capture here: {self.process.stderr.read().strip()}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        # What it still has in its buffer takes up to a second to its file.
        time.sleep(1)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)

    def datagrams(self):
        """(from the device, UDP payload) in the order on the wire."""
        fields = [part for name in FIELDS for part in ("-e", name)]
        done = subprocess.run(["tshark", "-r", self.path, "-T", "fields", *fields],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True)
        for line in done.stdout.splitlines():
            port, length, payload = line.split("\t")
            payload = bytes.fromhex(payload)
            if len(payload) != int(length) - 8:
                sys.exit(f"tshark kept {len(payload)} of {int(length) - 8} bytes")
            yield int(port) == CHDR_PORT, payload


def round8(length):
    """What a packet counts in the credit window."""
    return -(-length // 8) * 8


class Session:
    """What has to hold from packet to packet."""

    def __init__(self):
        self.samples, self.seq, self.tick, self.first = 0, 0, None, None
        self.sent, self.acknowledged, self.capacity, self.peak = 0, 0, None, 0
        self.kinds = {}

    def take(self, from_device, payload):
        """The next packet."""
        packet = read(payload, 64)
        kind = packet["type"]
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if packet["length"] != len(payload):
            sys.exit(f"a datagram of {len(payload)} bytes holds a packet of {packet['length']}")
        if not from_device and kind == STRS:
            self.acknowledged, self.capacity = packet["count_bytes"], packet["capacity_bytes"]
        elif from_device and kind == STRC and packet["op"] == RESYNC:
            self.count(len(payload))
        elif from_device and kind == DATA_TS:
            self.take_samples(packet, bytes.fromhex(packet["payload"]))
            self.count(len(payload))

    def take_samples(self, packet, payload):
        """A data packet: it follows the one before, and the counter in it is its time."""
        if self.tick is None:
            self.tick = self.first = packet["timestamp"]
        if (packet["seq"], packet["timestamp"]) != (self.seq, self.tick):
            sys.exit(f"packet {packet['seq']} of tick {packet['timestamp']} follows, "
                     f"not {self.seq} of {self.tick}")
        count = len(payload) // 4
        want = array.array("I", ((self.tick + k) & 0xFFFFFFFF for k in range(count)))
        if payload != want.tobytes():
            sys.exit(f"packet {self.seq}: its samples are not the antenna's")
        self.seq, self.tick = (self.seq + 1) & 0xFFFF, self.tick + count
        self.samples += count

    def count(self, length):
        """Adds to the credit window and checks it."""
        self.sent += round8(length)
        in_flight = self.sent - self.acknowledged
        if in_flight > self.capacity:
            sys.exit(f"{in_flight} bytes are in flight, the window has {self.capacity}")
        self.peak = max(self.peak, in_flight)


def main():
    """Captures, then judges."""
    if shutil.which("tshark") is None:
        skip("no tshark (Debian package tshark)")
    namespace.enter()
    with tempfile.TemporaryDirectory() as folder:
        capture = Capture(os.path.join(folder, "session.pcapng"))
        patient = ["--rx-buffer-samples", str(4 * RATE_HZ)]
        with capture, Radio("--rx-antenna", "ramp", "--link", "udp:gso=off", *patient) as radio:
            subprocess.run(
                [MILLSTREAM, "rx", "--args", f"addr={radio.addr},link=udp:gro=off,gso=off",
                 "--rate", str(RATE_HZ), "--nsamps", str(SAMPLES),
                 "--out", os.path.join(folder, "recording.sc16")],
                check=True, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(os.path.join(folder, "recording.sc16"), "rb") as file:
            recording = file.read()
        session = Session()
        for datagram in capture.datagrams():
            session.take(*datagram)
    # The radio sends on until it hears the stop.
    if session.samples < SAMPLES:
        sys.exit(f"the capture has {session.samples} samples, not {SAMPLES}")
    first = (session.first + k for k in range(SAMPLES))
    if recording != array.array("I", (tick & 0xFFFFFFFF for tick in first)).tobytes():
        sys.exit("the recording is not what the capture begins with")
    packets = sum(session.kinds.values())
    print(f"agreed: {packets} packets of types {sorted(session.kinds)}, {SAMPLES} samples exact, "
          f"at most {session.peak} of {session.capacity} bytes in flight")


if __name__ == "__main__":
    main()
