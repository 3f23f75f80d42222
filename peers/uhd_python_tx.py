#!/usr/bin/python3
"""UHD's Python API through the air of an emulated radio: what one channel sends another receives.

Channel 0 hears channel 1 and channel 1 hears channel 0, each with a delay of its own. One session
sends a timed burst of random samples on both and receives on both over the same time: every
received sample has to be the one sent so many ticks earlier, and silence where nothing was sent.

Exit status: 0 exact, 1 not, 77 skipped because a needed program is not there.
"""

import contextlib
import io
import os
import sys
import threading

from common import Radio, skip

os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "error")
try:
    import numpy as np
    import uhd
except ImportError as missing:
    skip(f"{missing} (Debian packages python3-uhd and python3-numpy)")

RATE_HZ = 1e6
FULL_SCALE = 32767
BURST_SAMPLES = 200_003
# The receptions begin before the bursts and end behind them.
LEAD_SAMPLES, TAIL_SAMPLES = 5_001, 5_003
# Heard on channel 0 from channel 1, and on channel 1 from channel 0.
DELAYS = [100, 2_345]
# Time enough to tune and to start four streams on a busy machine.
AHEAD_TICKS = 700_000
RADIO = ["--rx-antenna", f"loopback:1,delay={DELAYS[0]}",
         "--rx-antenna", f"loopback:0,delay={DELAYS[1]}",
         # The whole burst waits in the radio for its time.
         "--rx-buffer-samples", str(4 * int(RATE_HZ)), "--tx-buffer-samples", str(2 * BURST_SAMPLES)]


def random_samples(rng):
    """16-bit I and Q that survive the way through UHD's floats."""
    return rng.integers(-FULL_SCALE + 1, FULL_SCALE, (2, BURST_SAMPLES, 2))


def send(streamer, burst, tick):
    """The burst on both channels from the tick on, ended by an empty packet."""
    metadata = uhd.types.TXMetadata()
    metadata.has_time_spec, metadata.start_of_burst = True, True
    metadata.time_spec = uhd.types.TimeSpec.from_ticks(tick, RATE_HZ)
    # A quarter beyond the integer: UHD's converters round some samples and truncate others.
    steps = burst + np.sign(burst) / 4
    floats = ((steps[..., 0] + 1j * steps[..., 1]) / FULL_SCALE).astype(np.complex64)
    sent = streamer.send(floats, metadata, 10.0)
    metadata.has_time_spec, metadata.start_of_burst, metadata.end_of_burst = False, False, True
    streamer.send(np.zeros((2, 0), np.complex64), metadata)
    if sent != BURST_SAMPLES:
        print(f"send took {sent} of {BURST_SAMPLES} samples", file=sys.stderr)


def exchange(radio, burst):
    """What both channels receive while the burst goes out."""
    stream = uhd.usrp.StreamArgs("fc32", "sc16")
    stream.channels = [0, 1]
    receiver, transmitter = radio.get_rx_stream(stream), radio.get_tx_stream(stream)
    start = radio.get_time_now().to_ticks(RATE_HZ) + AHEAD_TICKS
    sender = threading.Thread(target=send, args=(transmitter, burst, start))
    sender.start()
    # It prints a line for every tenth of a second that it waits.
    with contextlib.redirect_stdout(io.StringIO()):
        received = radio.recv_num_samps(
            LEAD_SAMPLES + BURST_SAMPLES + TAIL_SAMPLES, 1e9, RATE_HZ, [0, 1], 0,
            uhd.types.TimeSpec.from_ticks(start - LEAD_SAMPLES, RATE_HZ), receiver)
    sender.join()
    scaled = [np.rint(part * FULL_SCALE).astype(int) for part in (received.real, received.imag)]
    return np.stack(scaled, axis=-1)


def main():
    """One exchange."""
    burst = random_samples(np.random.default_rng(7))
    with Radio(*RADIO) as emulated:
        radio = uhd.usrp.MultiUSRP(f"addr={emulated.addr}")
        radio.set_rx_rate(RATE_HZ)
        radio.set_tx_rate(RATE_HZ)
        received = exchange(radio, burst)
        del radio
    for channel, delay in enumerate(DELAYS):
        want = np.zeros_like(received[channel])
        first = LEAD_SAMPLES + delay
        want[first:first + BURST_SAMPLES] = burst[1 - channel]
        wrong = np.flatnonzero((received[channel] != want).any(axis=1))
        if wrong.size:
            at = wrong[0]
            sys.exit(f"channel {channel}: {wrong.size} samples differ; the first, {at - first} "
                     f"after the start of the burst, is {received[channel][at]}, not {want[at]}")
        print(f"channel {1 - channel} to {channel}: {BURST_SAMPLES} samples exact, "
              f"{delay} ticks later, silence around them")


if __name__ == "__main__":
    main()
