#!/usr/bin/python3
"""GNU Radio's UHD blocks against an emulated E320, in flowgraphs of GNU Radio Companion.

`grcc` makes programs of the flowgraphs in examples/gnuradio; they run as they are. The tags of the source (rx_time, rx_rate,
rx_freq) must be right, also behind gaps, and a station must lie where it is, also after a retune while samples flow.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

from common import ROOT, Radio, skip

os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "error")
try:
    import numpy as np
    import pmt
    from gnuradio import gr, uhd  # noqa: F401 (the flowgraphs use them)
except ImportError as missing:
    skip(f"{missing} (Debian package gnuradio)")

STATION_HZ, LEVEL_DBM, GAIN_DB = 1e9, -50.0, 40
SCENE = f"""
[[station]]
kind = "tone"
frequency = {STATION_HZ!r}
level = {LEVEL_DBM}
"""
RATE_HZ = 1e6
BINS = 1 << 14
# A second at 16 MS/s: no stall of a busy machine shows as an overrun.
PATIENT = ["--device", "e320", "--rx-buffer-samples", str(1 << 24)]


def generated(folder, name):
    """The class of a flowgraph, made by grcc."""
    if shutil.which("grcc") is None:
        skip("no grcc (Debian package gnuradio)")
    done = subprocess.run(["grcc", "-o", folder, os.path.join(ROOT, "examples/gnuradio", f"{name}.grc")], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
    if done.returncode != 0 or not os.path.exists(os.path.join(folder, f"{name}.py")):
        sys.exit(f"grcc ended with {done.returncode}:\n{done.stdout}")
    sys.path.insert(0, folder)
    return getattr(importlib.import_module(name), name)


def peak(samples, rate_hz):
    """Frequency of the strongest signal, and its level in dB of full scale."""
    window = np.hanning(BINS)
    bins = np.abs(np.fft.fft(np.asarray(samples[:BINS]) * window)) / window.sum()
    at = int(bins.argmax())
    power = sum(bins[(at + k) % BINS] ** 2 for k in (-2, -1, 0, 1, 2)) / 1.5
    return np.fft.fftfreq(BINS, 1 / rate_hz)[at], 10 * np.log10(power)


def tags_of(sink, key):
    """Pairs of offset and value of the tags with a key."""
    def value(tag):
        if key == "rx_time":
            return pmt.to_uint64(pmt.tuple_ref(tag.value, 0)), pmt.to_double(pmt.tuple_ref(tag.value, 1))
        return pmt.to_double(tag.value)
    return [(tag.offset, value(tag)) for tag in sink.tags() if pmt.symbol_to_string(tag.key) == key]


def check_station(samples, tuned_hz, what):
    """The station lies in its bin and has its level."""
    found, level = peak(samples, RATE_HZ)
    want = STATION_HZ - tuned_hz
    if abs(found - want) > RATE_HZ / BINS or abs(level - LEVEL_DBM - GAIN_DB) > 0.5:
        sys.exit(f"{what}: the station lies at {found:.0f} Hz with {level:.1f} dB, not at {want:.0f} Hz "
                 f"with {LEVEL_DBM + GAIN_DB} dB")
    return f"{found:+.0f} Hz, {level:.2f} dB"


def check_tags_and_retune(receive, addr):
    """The first tags, the station, and both again after a retune while samples flow."""
    first_hz, second_hz = STATION_HZ - 100e3, STATION_HZ + 200e3
    graph = receive(addr=addr, freq=first_hz, rate=RATE_HZ, gain=GAIN_DB, samples=2_000_000)
    graph.start()
    time.sleep(0.7)
    graph.set_freq(second_hz)
    graph.wait()
    samples = graph.sink.data()
    if len(samples) != 2_000_000:
        sys.exit(f"{len(samples)} samples came")
    rates, times, freqs = (tags_of(graph.sink, key) for key in ("rx_rate", "rx_time", "rx_freq"))
    if rates[0] != (0, RATE_HZ) or times[0][0] != 0 or freqs[0][0] != 0:
        sys.exit(f"the first tags: {rates[:1]} {times[:1]} {freqs[:1]}")
    moved = [(offset, hz) for offset, hz in freqs if abs(hz - second_hz) < 1]
    if abs(freqs[0][1] - first_hz) > 1 or not moved or moved[0][0] == 0:
        sys.exit(f"the tags rx_freq: {freqs}")
    before = check_station(samples[BINS:], first_hz, "before the retune")
    after = check_station(samples[-BINS:], second_hz, "after the retune")
    # Time goes on by the samples between the tags.
    for offset, (full, part) in times[1:]:
        passed = (full - times[0][1][0]) + (part - times[0][1][1])
        if abs(passed - offset / RATE_HZ) > 1e-6:
            sys.exit(f"the tag rx_time at sample {offset} says {passed} s")
    print(f"tags: rx_time {sum(times[0][1]):.6f} s, rx_rate {rates[0][1]:.0f}, rx_freq {freqs[0][1]:.0f} "
          f"at sample 0, {moved[0][1]:.0f} at sample {moved[0][0]}")
    print(f"station: {before}; after the retune {after}")


def check_gaps(receive, addr):
    """Behind each gap the tag rx_time shows how many samples are missing."""
    graph = receive(addr=addr, freq=STATION_HZ - 100e3, rate=RATE_HZ, gain=GAIN_DB, samples=1_000_000)
    graph.run()
    times = tags_of(graph.sink, "rx_time")
    missing = []
    for (offset, one), (next_offset, two) in zip(times, times[1:]):
        passed = ((two[0] - one[0]) + (two[1] - one[1])) * RATE_HZ
        missing.append(passed - (next_offset - offset))
    if len(missing) < 5 or any(abs(gap - round(gap)) > 0.1 for gap in missing):
        sys.exit(f"gaps by rx_time: {missing}")
    lost = {round(gap) for gap in missing}
    if len(lost) != 1 or lost.pop() <= 0:
        sys.exit(f"each gap is one packet, but rx_time shows {missing}")
    print(f"gaps: {len(missing)} of {round(missing[0])} samples each, by the tags rx_time behind them")


def main():
    """All checks."""
    with tempfile.TemporaryDirectory() as folder:
        receive = generated(folder, "usrp_receive")
        scene = os.path.join(folder, "scene.toml")
        with open(scene, "w", encoding="utf-8") as file:
            file.write(SCENE)
        with Radio(*PATIENT, "--scene", scene) as served:
            check_tags_and_retune(receive, served.addr)
        with Radio(*PATIENT, "--scene", scene, "--fault", "lose to_host data every=50") as served:
            check_gaps(receive, served.addr)


if __name__ == "__main__":
    main()
