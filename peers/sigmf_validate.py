#!/usr/bin/env python3
"""The SigMF project's own Python package reads and validates recordings of `millstream rx`.

  whole      a recording without a loss: valid, as many samples as asked for, values of the ramp
  with gaps  packets are lost on the way: a capture behind every gap, an annotation that names it,
             and the ramp's values prove that core:global_index counts exactly across the gaps
  floats     the same in cf32_le

The package is taken as installed, or from PyPI into a throw-away folder.

Usage: peers/sigmf_validate.py
Exit status: 0 valid, 1 not, 77 skipped because a needed program is not there.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from common import MILLSTREAM, Radio, skip

RATE_HZ = 1_000_000
SAMPLES = 200_000


def load_sigmf(folder):
    """The package `sigmf`, installed below `folder` if it is not there."""
    try:
        import sigmf
        return sigmf
    except ImportError:
        pass
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--target", folder, "sigmf"]
    done = subprocess.run(install, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=240, check=False)
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["pip said nothing"]
        skip(f"no Python package sigmf, and pip cannot install it: {lines[-1]}")
    sys.path.insert(0, folder)
    import sigmf
    return sigmf


def record(radio, path):
    """One recording; its document."""
    command = [MILLSTREAM, "rx", "--json", "--args", f"addr={radio.addr}", "--rate", str(RATE_HZ),
               "--nsamps", str(SAMPLES), "--out", path, "--format",
               "cf32" if "floats" in path else "sc16"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)["results"]


def ramp_value(pair):
    """The counter of the ramp antenna: I is its low half, Q its high half."""
    low, high = (int(part) & 0xFFFF for part in pair)
    return low | high << 16


def check(sigmf, path, results, floats):
    """Reads the recording as any program would; what is wrong ends the peer."""
    recording = sigmf.sigmffile.fromfile(path)
    recording.validate()
    delivered = results["ledger"]["delivered"]
    if recording.sample_count != delivered:
        sys.exit(f"{path}: {recording.sample_count} samples, but {delivered} were delivered")
    captures, annotations = recording.get_captures(), recording.get_annotations()
    lost = 0
    for annotation in annotations:
        starts = [capture["core:sample_start"] for capture in captures]
        if annotation["core:sample_start"] not in starts + [delivered]:
            sys.exit(f"{path}: no capture begins at the gap {annotation}")
        lost += int(re.match(r"(\d+) samples", annotation["core:comment"]).group(1))
    if lost > sum(results["ledger"]["lost"].values()):
        sys.exit(f"{path}: annotations name {lost} lost samples, the ledger {results['ledger']}")
    # The package scales integers to 1.0 for 32768.
    samples, scale = recording.read_samples(), 32767 if floats else 32768
    for capture in captures:
        start = capture["core:sample_start"]
        first = samples[start]
        value = ramp_value((round(float(first.real) * scale), round(float(first.imag) * scale)))
        if capture["core:global_index"] & 0xFFFFFFFF != value:
            sys.exit(f"{path}: the capture at {start} says index {capture['core:global_index']}, "
                     f"but the sample there is number {value}")
    return captures, annotations


def main():
    """Records, and lets the package judge."""
    with tempfile.TemporaryDirectory() as folder:
        sigmf = load_sigmf(os.path.join(folder, "packages"))
        lossy = ["--fault", "lose to_host data skip=10 every=20 count=3"]
        for name, options in [("whole", []), ("gaps", lossy), ("floats", [])]:
            path = os.path.join(folder, f"{name}.sigmf-meta")
            with Radio("--rx-antenna", "ramp", "--rx-buffer-samples", "8388608",
                       *options) as radio:
                results = record(radio, path)
            captures, annotations = check(sigmf, path, results, name == "floats")
            if name == "gaps" and len(annotations) < 3:
                sys.exit(f"three packets were lost, but the recording says {annotations}")
            print(f"sigmf {sigmf.__version__}: {name} is valid: {len(captures)} captures, "
                  f"{len(annotations)} gaps named")


if __name__ == "__main__":
    main()
