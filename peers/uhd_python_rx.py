#!/usr/bin/python3
"""UHD's Python API against emulated radios: every value of recv_num_samps is checked.

The antenna is a counter of the radio's ticks, so each sample names its own time: on channel k of
any radio, sample n of a reception that starts at tick t has to be t + n.

  1 channel, 2 channels               of one radio
  4 channels of two radios            of one process, time set at a PPS edge

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import contextlib
import io
import os
import sys

from common import Radio, skip

os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "error")
try:
    import numpy as np
    import uhd
except ImportError as missing:
    skip(f"{missing} (Debian packages python3-uhd and python3-numpy)")

RATE_HZ = 1e6
SAMPLES = 200_003
# Time enough to tune and to start four channels on a busy machine.
LEAD_TICKS = 500_000
FULL_SCALE = 32767
# Four seconds: no stall of a busy machine shows as an overrun.
PATIENT = ["--rx-antenna", "ramp", "--rx-buffer-samples", str(4 * int(RATE_HZ))]


def ticks(samples):
    """The counter that the antenna put into the samples: I its low, Q its high 16 bits."""
    low, high = (np.rint(part * FULL_SCALE).astype(np.int64) & 0xFFFF
                 for part in (samples.real, samples.imag))
    return high << 16 | low


def check(name, args, channels, set_time):
    """Receives from a time on and compares every sample of every channel."""
    radio = uhd.usrp.MultiUSRP(args)
    radio.set_rx_rate(RATE_HZ)
    set_time(radio, uhd.types.TimeSpec(0.0))
    stream = uhd.usrp.StreamArgs("fc32", "sc16")
    stream.channels = channels
    streamer = radio.get_rx_stream(stream)
    start = radio.get_time_now().to_ticks(RATE_HZ) + LEAD_TICKS
    # It prints a line for every tenth of a second that it waits.
    with contextlib.redirect_stdout(io.StringIO()):
        samples = radio.recv_num_samps(SAMPLES, 1e9, RATE_HZ, channels, 0,
                                       uhd.types.TimeSpec.from_ticks(start, RATE_HZ), streamer)
    if samples.shape != (len(channels), SAMPLES):
        sys.exit(f"{name}: shape {samples.shape}, not {(len(channels), SAMPLES)}")
    want = start + np.arange(SAMPLES)
    for channel, got in zip(channels, ticks(samples)):
        wrong = np.flatnonzero(got != want)
        if wrong.size:
            at = wrong[0]
            sys.exit(f"{name}: channel {channel}, sample {at} is of tick {got[at]}, not {want[at]}")
    print(f"{name}: {len(channels)} x {SAMPLES} values exact and aligned from tick {start} on")


def main():
    """All cases."""
    with Radio(*PATIENT, count=2) as radios:
        one, two = radios.addrs

        def now(radio, time):
            radio.set_time_now(time)

        def at_pps(radio, time):
            radio.set_time_unknown_pps(time)
        check("recv_num_samps, 1 channel", f"addr={one}", [0], now)
        check("recv_num_samps, 2 channels", f"addr={one}", [0, 1], now)
        check("recv_num_samps, 4 channels of 2 radios", f"addr0={one},addr1={two}",
              [0, 1, 2, 3], at_pps)


if __name__ == "__main__":
    main()
