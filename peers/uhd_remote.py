#!/usr/bin/python3
"""UHD from 4.4 on has an emulated radio send its samples to a third host: every sample is checked.

The third host is a socket of this program, which UHD knows only by its address and port. The
antenna is a counter of the radio's ticks, so each sample names its own time.

  raw_payload, full_packet            the samples only, and whole CHDR packets
  1 channel, 2 channels               each with a destination of its own

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there, or is too old.
"""

import os
import select
import socket
import struct
import sys

from common import Radio, skip

os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "error")
try:
    import uhd
except ImportError as missing:
    skip(f"{missing} (Debian package python3-uhd)")

RATE_HZ = 1e6
SAMPLES = 50_003
LEAD_TICKS = 300_000
PATIENCE_S = 20
HEADER_BYTES = 16
PATIENT = ["--rx-antenna", "ramp", "--rx-buffer-samples", str(4 * int(RATE_HZ))]


def third_hosts(count):
    """Sockets of this program, on ports of their own."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    return sockets


def check(radio, mode, channels):
    """Has the radio send to a socket for each channel, and compares every sample."""
    sockets = third_hosts(len(channels))
    streamers = []
    for channel, one in zip(channels, sockets):
        stream = uhd.usrp.StreamArgs("sc16", "sc16")
        stream.channels = [channel]
        stream.args = f"dest_addr=127.0.0.1,dest_port={one.getsockname()[1]},stream_mode={mode}"
        streamers.append(radio.get_rx_stream(stream))
    start = radio.get_time_now().to_ticks(RATE_HZ) + LEAD_TICKS
    command = uhd.types.StreamCMD(uhd.types.StreamMode.num_done)
    command.num_samps = SAMPLES
    command.stream_now = False
    command.time_spec = uhd.types.TimeSpec.from_ticks(start, RATE_HZ)
    for streamer in streamers:
        streamer.issue_stream_cmd(command)
    header = 0 if mode == "raw_payload" else HEADER_BYTES
    heard = {one: b"" for one in sockets}
    while any(len(got) < 4 * SAMPLES for got in heard.values()):
        ready, _, _ = select.select(sockets, [], [], PATIENCE_S)
        if not ready:
            samples = [len(got) // 4 for got in heard.values()]
            sys.exit(f"{mode}: no sample for {PATIENCE_S} s behind {samples}")
        for one in ready:
            datagram = one.recv(65536)
            due = start + len(heard[one]) // 4
            if header and struct.unpack_from("<Q", datagram, 8)[0] != due:
                sys.exit(f"{mode}: a packet has another time than {due}")
            heard[one] += datagram[header:]
    want = struct.pack(f"<{SAMPLES}I", *range(start, start + SAMPLES))
    for channel, one in zip(channels, sockets):
        if heard[one] != want:
            sys.exit(f"{mode}, channel {channel}: the samples are not those of the antenna")
    print(f"{mode}: {len(channels)} x {SAMPLES} samples exact at a third host from {start} on")


def main():
    """All cases."""
    # UHD 4.3 does not tell its version here.
    major, minor = (int(part) for part in getattr(uhd, "__version__", "4.3").split(".")[:2])
    if (major, minor) < (4, 4):
        skip(f"UHD {major}.{minor} ignores dest_addr; 4.4 and newer know it")
    with Radio(*PATIENT) as radios:
        radio = uhd.usrp.MultiUSRP(f"addr={radios.addrs[0]}")
        radio.set_rx_rate(RATE_HZ)
        for mode in ("raw_payload", "full_packet"):
            for channels in ([0], [1, 0]):
                check(radio, mode, channels)
        # UHD ends its session while there is a radio to tell.
        del radio


if __name__ == "__main__":
    main()
