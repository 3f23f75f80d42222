#!/usr/bin/python3
"""Stock UHD transmitters against an emulated radio: the samples that went on the air are checked.

  tx_waveforms           SINE on one, CONST, RAMP and SINE on two channels: what the radio writes
                         to its file of transmitted samples is that waveform, worked out here
                         also twice as fast as the rate at which UHD opens a radio, from where on it
                         numbers the times of packets wrong: there must be no gap
  tx_samples_from_file   a file of random samples: the radio's file is the same, bit by bit
  txrx_loopback_to_file  a sine through the loopback antenna and back: the file is that sine

Exit status: 0 exact, 1 not, 77 skipped because a needed program is not there.
"""

import json
import os
import random
import sys
import tempfile
import time

from common import Radio, first_difference, skip, uhd_example, uhd_output

try:
    import numpy as np
except ImportError as missing:
    skip(f"{missing} (Debian package python3-numpy)")

RATE_HZ = 1_000_000
SAMPLES = 100_000
# A whole number of samples and of the entries of any table of 2^n.
WAVE_HZ = RATE_HZ / 64
AMPLITUDE = 0.3
FULL_SCALE = 32767
# Of the peak: UHD rounds, and its ramp reaches the peak, not a step before it.
TOLERANCE = 1e-3
ATTEMPTS = 3
TROUBLES = ["tx_sequence_errors", "tx_overflow_packets"]
FILE_SAMPLES = 300_003
# A pause of a busy machine is shorter.
TX_BUFFER_S = 0.4
FAST_RATE_HZ = 32_000_000
# Device time per wall time: what this machine has to do stays small.
SLOW = 0.1
TX_BUFFER = ["--tx-buffer-samples", str(round(TX_BUFFER_S * RATE_HZ))]


def read_samples(path):
    """A file of 16-bit I and Q as complex numbers in units of one bit."""
    parts = np.fromfile(path, "<i2").astype(float)
    return parts[0::2] + 1j * parts[1::2]


def expected(shape, count, first):
    """The waveform, in phase with its first sample; full scale times the amplitude is its peak."""
    peak = AMPLITUDE * FULL_SCALE
    turns = np.arange(count) * WAVE_HZ / RATE_HZ
    if shape == "CONST":
        return np.full(count, peak)
    if shape == "SINE":
        return peak * np.exp(1j * (2 * np.pi * turns + np.angle(first)))
    # A ramp climbs from -peak to peak once per turn.
    return peak * (2 * (((first.real / peak + 1) / 2 + turns) % 1) - 1)


def check_shape(name, shape, samples):
    """The samples have to be the waveform."""
    error = np.abs(samples - expected(shape, samples.size, samples[0]))
    if shape == "RAMP":
        # Where it falls, from peak to -peak, a hair's breadth of phase is no error.
        error = np.minimum(error, np.abs(2 * AMPLITUDE * FULL_SCALE - error))
    worst = int(error.argmax())
    if not error[worst] <= TOLERANCE * AMPLITUDE * FULL_SCALE:
        sys.exit(f"{name}: sample {worst} of {samples.size} is {samples[worst]}, "
                 f"off by {error[worst]:.1f}")
    print(f"{name}: {samples.size} samples, off by {error[worst]:.1f} at most")


def radio_file(folder, channel):
    """Where the radio writes what a channel transmits."""
    return os.path.join(folder, f"channel{channel}.sc16")


def transmit(folder, channels, tool, *options):
    """Runs a transmitter until no packet was late; what UHD said. Where a busy machine lets the
    radio run dry no sample is lost."""
    # Both files are always there: each channel has its own.
    files = [part for channel in (0, 1) for part in ("--tx-out", radio_file(folder, channel))]
    for attempt in range(1, ATTEMPTS + 1):
        with Radio(*files, *TX_BUFFER) as radio:
            said = uhd_output(tool, "--args", f"addr={radio.addr}", "--rate", str(RATE_HZ),
                              "--freq", "1e9", *options)
            # The tools end when the last sample is in the radio, which then still plays.
            time.sleep(2 * TX_BUFFER_S)
        counters = radio.counters
        troubles = {name: counters[name] for name in TROUBLES if counters[name]}
        if troubles:
            sys.exit(f"{tool}: {troubles} of {counters}\n{said}")
        if not counters["tx_late_packets"]:
            if counters["tx_burst_acks"] != channels:
                sys.exit(f"{tool}: {counters['tx_burst_acks']} whole bursts, not {channels}\n{said}")
            return said
        print(f"{tool}: this machine was too busy on attempt {attempt}: "
              f"{counters['tx_late_packets']} packets were late")
    sys.exit(f"{tool}: packets were late in each of {ATTEMPTS} attempts\n{said}")


def check_waveform(folder, shape, channels):
    """tx_waveforms against the waveform itself."""
    numbers = ",".join(map(str, channels))
    transmit(folder, len(channels), "tx_waveforms", "--wave-type", shape, "--wave-freq",
             str(0 if shape == "CONST" else WAVE_HZ), "--ampl", str(AMPLITUDE),
             "--nsamps", str(SAMPLES), "--channels", numbers)
    for channel in channels:
        sent = read_samples(radio_file(folder, channel))
        # The tool sends whole buffers, then a zero that ends the burst.
        if sent.size <= SAMPLES or sent[-1] != 0:
            sys.exit(f"tx_waveforms {shape}: channel {channel} sent {sent.size} samples, "
                     f"the last is {sent[-1:]}")
        check_shape(f"tx_waveforms {shape}, channel {channel} of {numbers}", shape, sent[:-1])


def check_fast(folder):
    """tx_waveforms at a rate above the one at which UHD opens a radio."""
    path = radio_file(folder, 0)
    with Radio("--tx-out", path, "--time-scale", str(SLOW), "--tx-buffer-samples",
               str(2 * SAMPLES)) as radio:
        said = uhd_output("tx_waveforms", "--args", f"addr={radio.addr}", "--rate",
                          str(FAST_RATE_HZ), "--freq", "1e9", "--wave-type", "CONST", "--ampl",
                          str(AMPLITUDE), "--nsamps", str(SAMPLES))
        # The tool begins 0.1 s ahead, and all samples fit the radio's buffer.
        time.sleep(0.1 / SLOW + 1)
    check_shape("tx_waveforms at 32 MS/s", "CONST", read_samples(path)[:-1])
    with open(os.path.join(folder, "channel0.sigmf-meta"), encoding="utf-8") as file:
        captures = json.load(file)["captures"]
    if len(captures) != 1 or radio.counters["tx_burst_acks"] != 1:
        sys.exit(f"tx_waveforms at 32 MS/s: gaps, or no whole burst: {captures}\n{said}")


def check_file(folder):
    """tx_samples_from_file: bit by bit."""
    path = os.path.join(folder, "random.sc16")
    sent = random.Random(11).randbytes(4 * FILE_SAMPLES)
    with open(path, "wb") as file:
        file.write(sent)
    transmit(folder, 1, "tx_samples_from_file", "--type", "short", "--file", path)
    with open(radio_file(folder, 0), "rb") as file:
        got = file.read()
    if len(got) != len(sent):
        sys.exit(f"tx_samples_from_file: {len(got)} bytes, not {len(sent)}")
    wrong = first_difference(got, sent)
    if wrong:
        sys.exit(f"tx_samples_from_file: {wrong}")
    print(f"tx_samples_from_file: {FILE_SAMPLES} samples exact")


def check_loopback(folder):
    """txrx_loopback_to_file: a sine out and in again."""
    path = os.path.join(folder, "loopback.sc16")
    with Radio("--rx-antenna", "loopback:0", "--rx-buffer-samples", str(4 * RATE_HZ),
               *TX_BUFFER) as radio:
        args = f"addr={radio.addr}"
        uhd_output("txrx_loopback_to_file", "--tx-args", args, "--rx-args", args,
                   "--tx-rate", str(RATE_HZ), "--rx-rate", str(RATE_HZ), "--tx-freq", "1e9",
                   "--rx-freq", "1e9", "--wave-type", "SINE", "--wave-freq", str(WAVE_HZ),
                   "--ampl", str(AMPLITUDE), "--nsamps", str(SAMPLES), "--settling", "0.5",
                   "--type", "short", "--file", path)
    received = read_samples(path)
    if received.size < SAMPLES:
        sys.exit(f"txrx_loopback_to_file: {received.size} samples, not {SAMPLES}")
    check_shape("txrx_loopback_to_file SINE", "SINE", received)


def main():
    """All cases."""
    uhd_example("tx_waveforms")
    with tempfile.TemporaryDirectory() as folder:
        check_waveform(folder, "SINE", [0])
        for shape in ("CONST", "RAMP", "SINE"):
            check_waveform(folder, shape, [0, 1])
        check_fast(folder)
        check_file(folder)
        check_loopback(folder)


if __name__ == "__main__":
    main()
