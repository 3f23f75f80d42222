#!/usr/bin/env python3
"""Three receivers of `millstream relay`, of which one stops reading for a while: two `nc` (TCP) and a UDP socket.

One `nc` is stopped by a signal for STALL_S seconds (10 unless the variable says otherwise) and then goes on. The two
others get every sample of the stream. The stopped one misses what its queue and the kernel could not keep: its ledger
counts those packets, the gaps between its timestamps are exactly as long, and what came is right.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import array
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import namespace
from common import MILLSTREAM, Radio, die_with_parent, skip
from vita49 import CONTEXT, DATA

RATE_HZ = 1_000_000
STALL_S = float(os.environ.get("STALL_S", "10"))
SAMPLES = round(RATE_HZ * (STALL_S + 5))
PACKET_SAMPLES = 360
UDP, RUNS, STOPS = 4991, 4992, 4993


class Datagrams(threading.Thread):
    """A receiver that reads all the time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # As root beyond the machine's limit, for a machine that is busy with other things.
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUFFORCE, 64 << 20)
        except (AttributeError, PermissionError):
            self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
        self.socket.bind(("127.0.0.1", UDP))
        self.packets = []

    def run(self):
        while packet := self.socket.recv(1 << 16):
            self.packets.append(packet)


def split(data):
    """The packets of a connection: each begins with its length in words."""
    at = 0
    while at < len(data):
        (head,) = struct.unpack_from(">I", data, at)
        length = 4 * (head & 0xFFFF)
        if length == 0 or at + length > len(data):
            sys.exit(f"a connection ends within a packet: {length} bytes at {at} of {len(data)}")
        yield data[at:at + length]
        at += length


class Account:
    """What came to a receiver: packets, samples, and what its timestamps and counts miss."""

    def __init__(self, name, packets):
        self.name, self.packets, self.samples, self.missing, self.uncounted = name, 0, 0, 0, 0
        self.next = self.count = None
        for packet in packets:
            self.packets += 1
            kind = packet[0] >> 4
            if kind == DATA:
                self.take(packet)
            elif kind != CONTEXT:
                sys.exit(f"{name}: a packet of type {kind}")

    def take(self, packet):
        """A data packet."""
        head, _, _, _, seconds, picoseconds = struct.unpack_from(">IIIIIQ", packet)
        tick = seconds * RATE_HZ + -(-picoseconds * RATE_HZ // 10**12)
        data = array.array("H", packet[28:])
        data.byteswap()
        count = len(data) // 2
        if data.tobytes() != array.array("I", ((tick + k) & 0xFFFFFFFF for k in range(count))).tobytes():
            sys.exit(f"{self.name}: the packet of tick {tick} has other samples")
        if self.next is not None:
            missing, rest = divmod(tick - self.next, PACKET_SAMPLES)
            if rest or missing < 0:
                sys.exit(f"{self.name}: {tick - self.next} samples are missing before tick {tick}: no whole packets")
            self.missing += missing
            # The count goes on as if the dropped packets had been sent.
            self.uncounted += (head >> 16 & 15) != (self.count + missing + 1) % 16
        self.next, self.count = tick + count, head >> 16 & 15
        self.samples += count


def main():
    """Relays, stops a receiver, and judges."""
    if shutil.which("nc") is None:
        skip("no nc (Debian package netcat-openbsd)")
    namespace.enter()
    datagrams = Datagrams()
    datagrams.start()
    with tempfile.TemporaryDirectory() as folder:
        readers = {}
        for port in (RUNS, STOPS):
            with open(os.path.join(folder, str(port)), "wb") as out:
                readers[port] = subprocess.Popen(["nc", "-l", "127.0.0.1", str(port)], stdout=out, stdin=subprocess.DEVNULL,
                                                 preexec_fn=die_with_parent)
        time.sleep(0.5)
        with Radio("--any-rate", "--rx-antenna", "ramp", "--rx-buffer-samples", str(8 * RATE_HZ)) as radio:
            command = [MILLSTREAM, "relay", "--json", "--args", f"addr={radio.addr}", "--rate", str(RATE_HZ),
                       "--nsamps", str(SAMPLES), "--packet-samples", str(PACKET_SAMPLES), "--max-lost", "0",
                       "--buffer", "4", "--to", f"127.0.0.1:{UDP}", "--to", f"tcp:127.0.0.1:{RUNS}", "--to", f"tcp:127.0.0.1:{STOPS}"]
            relay = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
            time.sleep(2)
            readers[STOPS].send_signal(signal.SIGSTOP)
            time.sleep(STALL_S)
            readers[STOPS].send_signal(signal.SIGCONT)
            out, err = relay.communicate(timeout=120)
        if relay.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {relay.returncode}:\n{err}{out}")
        for reader in readers.values():
            reader.wait(30)
        time.sleep(0.5)
        connections = []
        for port in (RUNS, STOPS):
            with open(os.path.join(folder, str(port)), "rb") as file:
                connections.append(Account(f"tcp {port}", split(file.read())))
    accounts = [Account("udp", datagrams.packets), *connections]
    judge(json.loads(out)["results"], accounts)


def judge(results, accounts):
    """The receivers' sums are those of the ledgers."""
    if results["ledger"]["delivered"] != SAMPLES:
        sys.exit(f"the radio lost samples: {results['ledger']}")
    for account, ledger in zip(accounts, results["receivers"]):
        dropped = sum(ledger["dropped"].values())
        if not ledger["balances"] or ledger["acknowledged"] != account.packets or account.uncounted:
            sys.exit(f"{account.name} got {account.packets} packets, {account.uncounted} with a wrong count; its ledger: {ledger}")
        if account.name.endswith(str(STOPS)):
            # Dropped context packets are in no gap of the samples.
            if dropped == 0 or ledger["dropped"]["queue_full"] != dropped or not 0 <= dropped - account.missing <= STALL_S + 1:
                sys.exit(f"{account.name} misses {account.missing} packets, and its ledger has {ledger['dropped']}")
        elif dropped or account.missing or account.samples != SAMPLES:
            sys.exit(f"{account.name} got {account.samples} samples and misses {account.missing} packets; its ledger: {ledger}")
    print(f"agreed: two receivers with all {SAMPLES} samples; the third stopped for {STALL_S:.0f} s and misses "
          f"{accounts[2].missing} packets, as its ledger says")


if __name__ == "__main__":
    main()
