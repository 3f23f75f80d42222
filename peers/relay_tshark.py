#!/usr/bin/env python3
"""tshark reads the packets that `millstream relay` sends to three receivers, while packets of the radio are lost.

tshark captures on the loopback interface of a namespace and reads header, stream and class identifier, timestamps and
payload of each packet by its dissector of VITA 49. The antenna of the emulated radio counts its own ticks, so each sample
says when it was received. It is checked that

- every receiver is sent the same packets, with the count of each kind going up by one;
- each sample has the time that its packet says, to the picosecond;
- the gaps between timestamps are as many samples as the ledger calls lost, each behind a context packet with the same
  timestamp and the indicator of lost samples, and the count of data packets leaves out one number there;
- context packets come every half second with rate, frequency, bandwidth and gain;
- the ledger of each receiver balances, with as many packets as were captured.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import array
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

import namespace
from common import MILLSTREAM, Radio, skip
from vita49 import CONTEXT, DATA, DIFI, Capture

RATE_HZ = 250_000
SAMPLES = 3 * RATE_HZ
PORTS = [4991, 4992, 4993]
FREQ_HZ, GAIN_DB = 98.5e6, 20.0


class Receiver:
    """What has to hold from packet to packet at one receiver."""

    def __init__(self):
        self.counts = {}
        self.next, self.mark = None, None
        self.samples = self.lost = self.gaps = self.packets = self.contexts = 0

    def take(self, found):
        """The next packet."""
        self.packets += 1
        if (found["stream"], found["oui"], found["tsi"], found["tsf"]) != (7, DIFI, 3, 2):
            sys.exit(f"unexpected identifiers: {found}")
        kind = found["type"]
        if kind == CONTEXT:
            self.take_context(found)
        elif kind == DATA:
            self.take_data(found)
        else:
            sys.exit(f"a packet of type {kind}")

    def count(self, found, skipped=0):
        """Checks the count of a packet among those of its kind."""
        want = self.counts.get(found["type"], found["count"])
        if found["count"] != (want + skipped) % 16:
            sys.exit(f"a packet has the count {found['count']}, not {(want + skipped) % 16}: {found}")
        self.counts[found["type"]] = (found["count"] + 1) % 16

    def take_context(self, found):
        """A context packet."""
        self.count(found)
        self.contexts += 1
        facts = (found["class"], found["rate_hz"], found["frequency_hz"], found["gain_db"], found["bandwidth_hz"])
        if facts != (1, RATE_HZ, FREQ_HZ, GAIN_DB, RATE_HZ) or not found["loss_known"]:
            sys.exit(f"a context packet says {found}")
        self.mark = found["picoseconds"] if found["loss"] else self.mark

    def take_data(self, found):
        """A data packet: the time of its samples is that of the packet, to the picosecond."""
        ticks, rest = divmod(found["picoseconds"] * RATE_HZ, 10**12)
        # Picoseconds are rounded down.
        tick = ticks + (rest != 0)
        if tick * 10**12 // RATE_HZ != found["picoseconds"] or found["class"] != 0:
            sys.exit(f"a timestamp is that of no sample: {found['picoseconds']} ps")
        data = array.array("H", found["data"])
        data.byteswap()
        want = array.array("I", ((tick + k) & 0xFFFFFFFF for k in range(len(data) // 2))).tobytes()
        if data.tobytes() != want:
            sys.exit(f"the packet of tick {tick} has other samples")
        missing = 0 if self.next is None else tick - self.next
        self.count(found, skipped=int(missing != 0))
        if missing:
            if self.mark != found["picoseconds"]:
                sys.exit(f"{missing} samples are missing before tick {tick}, and no context packet says so")
            self.gaps, self.lost = self.gaps + 1, self.lost + missing
        elif self.mark == found["picoseconds"]:
            sys.exit(f"a context packet tells a loss before tick {tick}, and there is none")
        self.next = tick + len(data) // 2
        self.samples += len(data) // 2


def main():
    """Captures, then judges."""
    if shutil.which("tshark") is None:
        skip("no tshark (Debian package tshark)")
    namespace.enter()
    sinks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in PORTS]
    for sink, port in zip(sinks, PORTS):
        sink.bind(("127.0.0.1", port))
    with tempfile.TemporaryDirectory() as folder:
        capture = Capture(os.path.join(folder, "relay.pcapng"), PORTS)
        radio = Radio("--any-rate", "--rx-antenna", "ramp", "--rx-buffer-samples", str(8 * RATE_HZ),
                      "--fault", "lose to_host data p=0.01 seed=5")
        command = [MILLSTREAM, "relay", "--json", "--args", f"addr={radio.addr}", "--rate", str(RATE_HZ), "--nsamps", str(SAMPLES),
                   "--freq", str(FREQ_HZ), "--gain", str(GAIN_DB), "--stream-id", "7", "--interval", "0.5"]
        for port in PORTS:
            command += ["--to", f"127.0.0.1:{port}"]
        with capture, radio:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        results = json.loads(done.stdout)["results"]
        receivers = {port: Receiver() for port in PORTS}
        for port, found in capture.packets():
            receivers[port].take(found)
    judge(results, receivers)


def judge(results, receivers):
    """The receivers' sums are those of the ledgers."""
    ledger = results["ledger"]
    lost = sum(ledger["lost"].values())
    for (port, receiver), account in zip(receivers.items(), results["receivers"]):
        if account["to"] != f"udp:127.0.0.1:{port}" or not account["balances"]:
            sys.exit(f"the ledger of port {port} is {account}")
        if (account["offered"], account["acknowledged"]) != (receiver.packets, receiver.packets):
            sys.exit(f"port {port} got {receiver.packets} packets, and its ledger is {account}")
        if receiver.samples != ledger["delivered"]:
            sys.exit(f"port {port} got {receiver.samples} samples, and the radio delivered {ledger['delivered']}")
        # A loss before the first or behind the last packet is in no gap.
        if not 0 < receiver.lost <= lost or lost - receiver.lost > 4000:
            sys.exit(f"port {port} misses {receiver.lost} samples, and the ledger has {lost} lost")
        if receiver.contexts < SAMPLES / RATE_HZ / 0.5:
            sys.exit(f"port {port} got {receiver.contexts} context packets")
    one = receivers[PORTS[0]]
    print(f"agreed: {len(receivers)} receivers with {one.packets} packets each, {one.contexts} of them context; {one.samples} samples "
          f"exact in time; {one.gaps} gaps of {one.lost} samples, each marked")


if __name__ == "__main__":
    main()
