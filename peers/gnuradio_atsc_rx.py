#!/usr/bin/python3
"""GNU Radio's ATSC receiver (gnuradio.dtv.atsc_rx) has to decode our signal, bit-exact.

Our example atsc_modulate makes 1.4 s of 8-VSB at 6.25 MS/s from a stream of numbered random
packets; lock, that is the end of the first packets that GNU Radio flags as bad, has to come within
2000 packets, and every packet behind it has to be the next one sent. GNU Radio 3.10.5 flags a
packet of a perfect signal now and then (with seed 2158152539 number 12879), and rarely all 51 of an
interleaver's span (seed 2575494241): its loops follow what is sent. Up to three spans in a run are taken
for that, if the signal is right: a demodulation in numpy, which knows rate and pilot and follows
nothing, has to find all symbols near one of the eight levels.

Usage: peers/gnuradio_atsc_rx.py [--seed S]
Exit status: 0 exact, 1 not, 77 skipped because a needed program is not there.
"""

import argparse
import os
import random
import tempfile

from gnuradio_atsc_common import SYMBOL_RATE_HZ, compare, example, numbered_stream, split, skip
from gnuradio import blocks, dtv, gr

try:
    import numpy as np
except ImportError as error:
    skip(f"{error} (Debian package python3-numpy)")

RATE_HZ = 6.25e6
# GNU Radio's gain control expects levels of some thousands.
SAMPLES_PER_SYMBOL = 1.5
PACKETS = 18_000
# What the receiver may take to lock, and what it holds back at the end.
LOCK_PACKETS = 2_000
SPARE_PACKETS = 400
# What GNU Radio may flag of a perfect signal after its lock: three times what one error is spread over.
FLAGGED_PACKETS = 3 * 52
ROLL_OFF = 0.1152
# Levels are 2 apart.
SYMBOL_ERROR_RMS = 0.15


def receive(signal, output):
    top = gr.top_block()
    source = blocks.file_source(gr.sizeof_short, signal, False)
    samples = blocks.interleaved_short_to_complex(False, False, 1.0)
    receiver = dtv.atsc_rx(RATE_HZ, SAMPLES_PER_SYMBOL)
    top.connect(source, samples, receiver, blocks.file_sink(1, output))
    top.run()


def symbols(signal):
    """The signal's symbols, in blocks, before decision, with the pulse of ATSC A/53 Part 2."""
    samples = np.fromfile(signal, np.int16).reshape(-1, 2) @ np.array([1, 1j])
    block, span, finer = 1 << 16, 2048, 8
    # The band lies around zero: a pulse of half the symbol rate, the pilot at its lower edge.
    time = np.concatenate([np.arange(block // 2), np.arange(-block // 2, 0)]) / RATE_HZ * SYMBOL_RATE_HZ / 2
    time[0] = 1e-9
    width = 4 * ROLL_OFF * time
    pulse = (np.sin(np.pi * time * (1 - ROLL_OFF)) + width * np.cos(np.pi * time * (1 + ROLL_OFF))) \
        / (np.pi * time * (1 - width ** 2))
    pulse = np.fft.fft(np.where(np.abs(time) < span / 4, pulse, 0))
    shift = None
    for start in range(0, len(samples) - block, block - 2 * span):
        coarse = np.fft.fft(samples[start:start + block]) * pulse
        fine = np.zeros(block * finer, complex)
        fine[:block // 2], fine[-block // 2:] = coarse[:block // 2], coarse[-block // 2:]
        at = (start + np.arange(block * finer) / finer) / RATE_HZ * SYMBOL_RATE_HZ
        real = np.fft.ifft(fine) * np.exp(2j * np.pi / 4 * at)
        real = (real * np.exp(-1j * np.angle(real.mean()))).real
        inner = np.arange(np.ceil(at[span * finer]), at[-span * finer])

        def taken(moved):
            """Values at the symbols' times, of unit power without the pilot."""
            values = np.interp(inner + moved, at, real)
            return (values - values.mean()) / values.std()

        if shift is None:
            # Where symbols' power varies least: fourth moments are least at their middle.
            shift = min(np.arange(0, 1, 0.005), key=lambda moved: (taken(moved) ** 4).mean())
        yield taken(shift) * 21 ** 0.5


def require_a_right_signal(signal):
    """Ends the peer unless the symbols lie near the eight levels all the time."""
    worst = 0.0
    for block in symbols(signal):
        errors = block - np.clip(2 * np.round((block - 1) / 2) + 1, -7, 7)
        segments = errors[:len(errors) // 832 * 832].reshape(-1, 832)
        worst = max(worst, float(np.sqrt((segments ** 2).mean(axis=1)).max()))
    print(f"symbols of a segment are {worst:.3f} from a level at most (rms, levels are 2 apart)")
    if not 0 < worst < SYMBOL_ERROR_RMS:
        raise SystemExit(f"FAILED: expected below {SYMBOL_ERROR_RMS}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    seed = parser.parse_args().seed
    print(f"seed {seed}")
    sent = numbered_stream(seed, PACKETS)
    with tempfile.TemporaryDirectory() as folder:
        stream, signal, output = (os.path.join(folder, name) for name in ("in.ts", "s", "out.ts"))
        with open(stream, "wb") as file:
            file.write(sent)
        example("atsc_modulate", stream, signal, RATE_HZ, "sc16")
        require_a_right_signal(signal)
        receive(signal, output)
        with open(output, "rb") as file:
            got = split(file.read())
    flagged = [i for i, packet in enumerate(got) if packet[1] & 0x80]
    locked = max((i + 1 for i in flagged if i < LOCK_PACKETS), default=0)
    later = [i for i in flagged if i >= LOCK_PACKETS]
    print(f"{len(got)} packets out, locked at number {locked}, flagged later: {later}")
    if len(later) > FLAGGED_PACKETS or len(got) < LOCK_PACKETS:
        raise SystemExit("FAILED: that is too late")
    compare(split(sent), got[locked:], PACKETS - LOCK_PACKETS - SPARE_PACKETS, SPARE_PACKETS,
            [i - locked for i in later])


main()
