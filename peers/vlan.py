"""A VLAN interface for kernels that have none (CONFIG_VLAN_8021Q): a TAP whose frames are tagged.

As a program, `vlan.py PARENT NAME ID MTU` makes the TAP interface NAME and carries its frames, with
802.1Q tags, over PARENT and back, until its standard input ends.
"""

import fcntl
import os
import select
import socket
import struct
import subprocess
import sys

import namespace
from common import die_with_parent

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x2, 0x1000  # linux/if_tun.h
ETH_P_ALL, ETH_P_8021Q = 3, 0x8100  # linux/if_ether.h
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23  # linux/if_packet.h
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
TP_STATUS_VLAN_VALID = 1 << 4
# struct tpacket_auxdata: status, lengths, offsets, tag control information, tag protocol.
AUXDATA = struct.Struct("=IIIHHHH")


class Tagger:
    """The TAP interface, until it is closed."""

    def __init__(self, parent, name, vlan, mtu):
        self.process = subprocess.Popen(
            [sys.executable, __file__, parent, name, str(vlan), str(mtu)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("cannot make a TAP interface")

    def close(self):
        """Ends it; the interface is gone."""
        self.process.stdin.close()
        self.process.wait(10)


def open_tap(name):
    """The descriptor of a new TAP interface."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


def received(wire, vlan):
    """The next frame of the VLAN without its tag, or None; wherever the kernel keeps the tag."""
    frame, ancillary, _, _ = wire.recvmsg(65536, 64)
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, control, _ = AUXDATA.unpack(data[:AUXDATA.size])
            if status & TP_STATUS_VLAN_VALID:
                return frame if control & 0xFFF == vlan else None
    protocol, control = struct.unpack("!HH", frame[12:16])
    if protocol != ETH_P_8021Q or control & 0xFFF != vlan:
        return None
    return frame[:12] + frame[16:]


def carry(tap, wire, vlan):
    """Carries frames both ways until standard input ends."""
    tag = struct.pack("!HH", ETH_P_8021Q, vlan)
    while True:
        ready = select.select([tap, wire, sys.stdin], [], [])[0]
        if sys.stdin in ready:
            return
        if tap in ready:
            frame = os.read(tap, 65536)
            wire.send(frame[:12] + tag + frame[12:])
        if wire in ready:
            try:
                frame = received(wire, vlan)
            except OSError:  # The other end of the pair has gone first.
                return
            if frame:
                os.write(tap, frame)


def main():
    """Makes the interface and carries its frames."""
    parent, name, vlan, mtu = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    tap = open_tap(name)
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    wire.bind((parent, ETH_P_ALL))
    namespace.ip("link", "set", name, "mtu", mtu, "txqueuelen", "20000", "up")
    print("ready", flush=True)
    carry(tap, wire, vlan)


if __name__ == "__main__":
    main()
