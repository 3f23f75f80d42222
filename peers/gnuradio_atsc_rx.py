#!/usr/bin/python3
"""GNU Radio's ATSC receiver (gnuradio.dtv.atsc_rx) has to decode our signal, bit-exact.

Our example atsc_modulate makes 1.4 s of 8-VSB at 6.25 MS/s from a stream of numbered random
packets; every packet that comes out after GNU Radio's lock, that is after the last one that it
flags as bad, has to be the next one sent, and lock has to come within 2000 packets.

Usage: peers/gnuradio_atsc_rx.py [--seed S]
Exit status: 0 exact, 1 not, 77 skipped because a needed program is not there.
"""

import argparse
import os
import random
import tempfile

from gnuradio_atsc_common import compare, example, numbered_stream, split
from gnuradio import blocks, dtv, gr

RATE_HZ = 6.25e6
# GNU Radio's gain control expects levels of some thousands.
SAMPLES_PER_SYMBOL = 1.5
PACKETS = 18_000
# What the receiver may take to lock, and what it holds back at the end.
LOCK_PACKETS = 2_000
SPARE_PACKETS = 400


def receive(signal, output):
    top = gr.top_block()
    source = blocks.file_source(gr.sizeof_short, signal, False)
    samples = blocks.interleaved_short_to_complex(False, False, 1.0)
    receiver = dtv.atsc_rx(RATE_HZ, SAMPLES_PER_SYMBOL)
    top.connect(source, samples, receiver, blocks.file_sink(1, output))
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
        example("atsc_modulate", stream, signal, RATE_HZ, "sc16")
        receive(signal, output)
        with open(output, "rb") as file:
            got = split(file.read())
    locked = max((i + 1 for i, packet in enumerate(got) if packet[1] & 0x80), default=0)
    print(f"{len(got)} packets out, the last flagged one is number {locked - 1}")
    if locked > LOCK_PACKETS:
        raise SystemExit("FAILED: that is too late")
    compare(split(sent), got[locked:], PACKETS - LOCK_PACKETS - SPARE_PACKETS, SPARE_PACKETS)


main()
