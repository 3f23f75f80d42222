"""VITA 49.2 packets for the peers of `relay`, read by tshark: from a capture of the network, never from our own code.

Debian 12's tshark (4.0) reads the header, the identifiers, the timestamps and the payload of packets. It does not read the
fields of context packets; those are read here by the standard's table.
"""

import os
import struct
import subprocess
import sys
import time

from common import die_with_parent

FIELDS = ["udp.dstport", "tcp.dstport", "vrt.type", "vrt.seq", "vrt.len", "vrt.sid", "vrt.oui", "vrt.icc", "vrt.pcc", "vrt.tsi",
          "vrt.tsf", "vrt.ts_int", "vrt.ts_frac_picosecond", "vrt.data", "udp.payload"]
DATA, CONTEXT = 1, 4
DIFI = 0x6A621E


class Capture:
    """tshark on the loopback interface of this namespace, for the length of a `with` block."""

    def __init__(self, path, ports):
        self.path, self.ports = path, ports

    def __enter__(self):
        of_ports = " or ".join(f"udp dst port {port}" for port in self.ports)
        self.process = subprocess.Popen(
            ["tshark", "-q", "-i", "lo", "-B", "64", "-f", of_ports, "-w", self.path],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        for line in self.process.stderr:
            if "Capturing on" in line:
                break
        # It says so before its socket is open.
        time.sleep(2)
        return self

    def __exit__(self, *_):
        time.sleep(1)
        self.process.terminate()
        _, said = self.process.communicate(timeout=60)
        dropped = [line for line in said.splitlines() if "dropped" in line and not line.strip().startswith("0 ")]
        if dropped:
            sys.exit(f"tshark missed packets: {dropped}")

    def packets(self):
        """(port, packet) of each packet, in order."""
        command = ["tshark", "-r", self.path, "-T", "fields"]
        for port in self.ports:
            command += ["-d", f"udp.port=={port},vrt"]
        for field in FIELDS:
            command += ["-e", field]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=240,
                              check=True, env={**os.environ, "LC_ALL": "C"})
        for line in done.stdout.splitlines():
            values = dict(zip(FIELDS, line.split("\t")))
            yield int(values["udp.dstport"]), packet(values)


def number(text):
    """A number as tshark writes it."""
    return int(text, 0)


def packet(values):
    """The properties of a packet that tshark has read."""
    payload = bytes.fromhex(values["udp.payload"].replace(":", ""))
    found = {
        "type": number(values["vrt.type"]), "count": number(values["vrt.seq"]), "words": number(values["vrt.len"]),
        "stream": number(values["vrt.sid"]), "oui": number(values["vrt.oui"]), "class": number(values["vrt.pcc"]),
        "tsi": number(values["vrt.tsi"]), "tsf": number(values["vrt.tsf"]),
        "picoseconds": number(values["vrt.ts_int"]) * 10**12 + number(values["vrt.ts_frac_picosecond"]),
    }
    if found["words"] * 4 != len(payload):
        sys.exit(f"a packet of {found['words']} words is a datagram of {len(payload)} bytes")
    if found["type"] == DATA:
        found["data"] = bytes.fromhex(values["vrt.data"].replace(":", ""))
    else:
        found.update(context(payload[28:]))
    return found


def context(fields):
    """The fields behind the timestamp of a context packet: clause 9 of VITA 49.2, in the order of CIF0."""
    (cif0, reference, bandwidth, if_hz, rf_hz, offset, level, gain, rate, adjustment, calibration, state, form,
     vector) = struct.unpack(">IIqqqqiiqqIIII", fields)
    if cif0 & 0x7FFFFFFF != 0x7BB98000 or reference != 0x64:
        sys.exit(f"a context packet has the fields {cif0:08x} and the reference point {reference:#x}")
    if (if_hz, offset, level, adjustment, calibration, form, vector) != (0, 0, 0, 0, 0, 0xA00003CF, 0):
        sys.exit("a context packet has unexpected values")
    return {"changed": cif0 >> 31, "bandwidth_hz": bandwidth / 2**20, "frequency_hz": rf_hz / 2**20, "rate_hz": rate / 2**20,
            "gain_db": struct.unpack(">h", struct.pack(">H", gain & 0xFFFF))[0] / 128,
            "loss_known": state >> 24 & 1, "loss": state >> 12 & 1}
