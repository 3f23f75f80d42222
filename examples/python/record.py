"""Records from a radio, and lists the stretches without a gap.

    python record.py [ARGS] [SECONDS]     ARGS such as addr=192.168.10.2; without: an emulated radio
"""

import sys

import millstream

args = sys.argv[1] if len(sys.argv) > 1 else "radio=emulated"
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.5

with millstream.Radio(args) as radio:
    rate = radio.set_rate(1e6)
    radio.set_gain(40)
    radio.set_frequency(1e9 - 100e3)
    recording = radio.record("recording.sigmf-meta", samples=int(rate * seconds))

for segment in recording.segments:
    missing = f", {segment.missing} samples missing before it" if segment.missing else ""
    level = abs(segment.complex64()).mean()
    print(f"{len(segment)} samples from number {segment.global_index}, mean {level:.4f}{missing}")
