#!/usr/bin/python3
"""Our receiver has to decode the signal of GNU Radio's ATSC transmitter, bit-exact.

GNU Radio's blocks (gnuradio.dtv) code a stream of numbered random packets, its standard blocks
shape the sideband and resample to 6.25 MS/s; our example atsc_receive decodes. Every packet out has
to be the next one sent, from the first on.

Usage: peers/gnuradio_atsc_tx.py [--seed S]
Exit status: 0 exact, 1 not, 77 skipped because a needed program is not there.
"""

import argparse
import cmath
import os
import random
import tempfile

from gnuradio_atsc_common import SYMBOL_RATE_HZ, coder, compare, example, numbered_stream, split
from gnuradio import blocks, digital, filter, gr

RATE_HZ = 6.25e6
PACKETS = 18_000
PILOT = 1.25
# Scale of the 16-bit samples: peaks stay within their range.
LEVEL = 1500.0
ROLL_OFF = 0.1152
# Two fields until the first sync at the latest, the interleaver, and what lies in buffers.
LOCK_PACKETS = 1_000
SPARE_PACKETS = 400
# 6.25 MHz over the symbol rate, exactly.
INTERPOLATION, DECIMATION = 3575, 6156
SPAN_SYMBOLS = 64


def transmit(stream, signal):
    top = gr.top_block()
    levels = digital.chunks_to_symbols_bc([complex(2 * bits - 7 + PILOT) for bits in range(8)])
    # The pilot moves to the lower edge; a pulse of half the symbol rate then leaves one sideband.
    shift = blocks.rotator_cc(-cmath.pi / 2)
    taps = filter.firdes.root_raised_cosine(
        INTERPOLATION * LEVEL, INTERPOLATION * SYMBOL_RATE_HZ, SYMBOL_RATE_HZ / 2, ROLL_OFF,
        INTERPOLATION * SPAN_SYMBOLS)
    shape = filter.rational_resampler_ccf(INTERPOLATION, DECIMATION, taps)
    top.connect(blocks.file_source(1, stream, False), *coder(), levels, shift, shape,
                blocks.complex_to_interleaved_short(False, 1.0),
                blocks.file_sink(gr.sizeof_short, signal))
    top.run()


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
        transmit(stream, signal)
        print(example("atsc_receive", signal, output, RATE_HZ, "sc16"), end="")
        with open(output, "rb") as file:
            got = split(file.read())
    compare(split(sent), got, PACKETS - LOCK_PACKETS - SPARE_PACKETS, SPARE_PACKETS)


main()
