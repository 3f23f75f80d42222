"""Scans a band: tunes from step to step and prints the strong signals.

    python scan.py [ARGS] [FROM_MHZ] [TO_MHZ]
"""

import sys

import numpy as np

import millstream

args = sys.argv[1] if len(sys.argv) > 1 else "radio=emulated"
low, high = (float(mhz) * 1e6 for mhz in (sys.argv[2:4] if len(sys.argv) > 3 else ("995", "1005")))
RATE, BINS = 2e6, 4096

with millstream.Radio(args) as radio:
    radio.set_rate(RATE)
    radio.set_gain(40)
    # The outer parts of the band are left to the next step.
    for centre in np.arange(low, high, RATE / 2) + RATE / 4:
        radio.set_frequency(centre)
        with radio.receive() as stream:
            # What the filters still had of the last frequency.
            stream.skip(4096)
            samples = stream.read(BINS).samples
        spectrum = np.fft.fftshift(np.fft.fft(samples * np.hanning(BINS))) / (BINS / 2)
        levels = 20 * np.log10(np.abs(spectrum) + 1e-9)
        offsets = np.fft.fftshift(np.fft.fftfreq(BINS, 1 / RATE))
        at = levels.argmax()
        if -RATE / 4 <= offsets[at] < RATE / 4 and levels[at] > -40:
            print(f"{(centre + offsets[at]) / 1e6:.3f} MHz: {levels[at]:.1f} dB of full scale")
