#!/usr/bin/python3
"""GNU Radio transmits through its UHD blocks into emulated radios: all of it leaves the radio, and nothing else.

  tone    `usrp_transmit.grc` of examples/gnuradio, made by grcc, against a stock E320 and N320 image: through the
          DUC the tone lies at its frequency with its level, and its phase runs on from the first sample to the last
  random  samples of `usrp_sink` to two channels of a radio without a DUC: the radio transmits them bit by bit

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import os
import sys
import tempfile
import time

import gnuradio_usrp_source as source
from common import Radio, first_difference

# After the other peer, which skips what is not there.
import numpy as np
from gnuradio import blocks, gr, uhd

TONE_HZ, LEVEL_DB = 100e3, -6.02
# Device, speed of its clock beside ours, samples: the file of an N320 has 200 for each.
TONES = [("e320", 1.0, 200_000), ("n320", 0.1, 20_000)]
RANDOM = 200_003
FULL_SCALE = 32767
# Samples of the host at either end, on which the filters of the DUC rise and fall.
EDGE = 64
# Of the level; a sample that is missing or doubled turns the tone by 36 degrees.
TOLERANCE = 0.02
# Wall time for the radio to play what it still has.
REST_S = 1.0


def check_taken(what, served, count, channels=1):
    """UHD ends a burst that has no sample left with one zero; that it ran dry is the work of a busy machine."""
    taken = served.counters["tx_samples"]
    lost = {name: served.counters[name] for name in ("tx_late_packets", "tx_sequence_errors", "tx_overflow_packets")}
    if any(lost.values()) or taken not in (channels * count, channels * (count + 1)):
        sys.exit(f"{what}: the radio took {taken} samples, not {channels} x {count}: {lost}")
    return taken // channels


def check_tone(transmit, folder, device, scale, count):
    """The tone, sample by sample, at the rate of the radio."""
    path = os.path.join(folder, "sent.sc16")
    with Radio("--device", device, "--time-scale", str(scale), "--tx-buffer-samples", str(count + 1),
               "--tx-out", path) as served:
        graph = transmit(addr=served.addr, rate=source.RATE_HZ, tone=TONE_HZ, samples=count)
        graph.run()
        time.sleep(REST_S)
        del graph
    taken = check_taken(device, served, count)
    wave = np.fromfile(path, dtype="<i2").reshape(-1, 2) @ [1, 1j] / 32768
    factor, rest = divmod(len(wave), taken)
    if rest:
        sys.exit(f"{device}: the radio took {taken} samples and transmitted {len(wave)}")
    turned = wave * np.exp(-2j * np.pi * TONE_HZ / (factor * source.RATE_HZ) * np.arange(len(wave)))
    steady = turned[EDGE * factor:(count - EDGE) * factor]
    mean = steady.mean()
    worst, level = np.abs(steady / mean - 1).max(), 20 * np.log10(abs(mean))
    if worst > TOLERANCE or abs(level - LEVEL_DB) > 0.2:
        sys.exit(f"{device}: the tone at {TONE_HZ:.0f} Hz has {level:.2f} dB, and a sample {worst:.3f} of it beside it")
    print(f"{device}: {taken} samples taken, {len(wave)} transmitted; a tone at {TONE_HZ:.0f} Hz with {level:.2f} dB, "
          f"no sample further than {worst:.4f} from it")


def check_random(folder):
    """Random samples, bit by bit, on two channels."""
    paths = [os.path.join(folder, f"channel{channel}.sc16") for channel in (0, 1)]
    wanted = np.random.default_rng(5).integers(-FULL_SCALE + 1, FULL_SCALE, (2, RANDOM, 2))
    # A quarter beyond the integer: UHD's converters round some samples and truncate others.
    floats = (wanted + np.sign(wanted) / 4) @ [1, 1j] / FULL_SCALE
    with Radio("--tx-buffer-samples", str(RANDOM + 1), *(part for path in paths for part in ("--tx-out", path))) as served:
        graph = gr.top_block()
        sink = uhd.usrp_sink(f"addr={served.addr}", uhd.stream_args("fc32", "sc16", "", [0, 1]), "")
        sink.set_samp_rate(source.RATE_HZ)
        sink.set_time_now(uhd.time_spec(0.0))
        sink.set_start_time(uhd.time_spec(0.5))
        for channel in (0, 1):
            sink.set_center_freq(1e9, channel)
            graph.connect(blocks.vector_source_c(floats[channel].astype(np.complex64), False), (sink, channel))
        graph.run()
        time.sleep(0.5 + REST_S)
        del graph, sink
    check_taken("random", served, RANDOM, 2)
    for path, want in zip(paths, wanted):
        with open(path, "rb") as file:
            got = file.read()
        wrong = first_difference(got[:4 * RANDOM], want.astype("<i2").tobytes())
        if wrong or any(got[4 * RANDOM:]):
            sys.exit(f"random: {os.path.basename(path)}: {wrong or 'more samples behind the last'}")
    print(f"random: 2 x {RANDOM} samples exact")


def main():
    """All checks."""
    with tempfile.TemporaryDirectory() as folder:
        transmit = source.generated(folder, "usrp_transmit")
        for device, scale, count in TONES:
            check_tone(transmit, folder, device, scale, count)
        check_random(folder)


if __name__ == "__main__":
    main()
