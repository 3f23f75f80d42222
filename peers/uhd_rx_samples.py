#!/usr/bin/python3
"""Stock rx_samples_to_file against an emulated radio: every sample of the file is checked.

  ramp antenna:  the file has to be a counter without a gap
  file antenna:  the file has to be the antenna's file, over and over, from some sample on
  two channels:  the antenna of channel 1 has to arrive by channel 1

Where UHD itself reports an overflow (the letter O: this machine was too busy to read in time) the
run is repeated, up to three times. A gap without such a report is a failure.

Usage: peers/uhd_rx_samples.py [--rate HZ] [--nsamps N]
Exit status: 0 exact, 1 not, 77 skipped because a needed program is not there.
"""

import argparse
import array
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from common import Radio, first_difference, uhd_example

RX_SAMPLES = uhd_example("rx_samples_to_file")
ATTEMPTS = 3
# No multiple of a packet or of a chunk.
ANTENNA_SAMPLES = 100_003


def record(radio, path, options, channel):
    """One recording; UHD's output."""
    command = [RX_SAMPLES, "--args", f"addr={radio.addr}", "--type", "short", "--file", path,
               "--rate", str(options.rate), "--nsamps", str(options.nsamps),
               "--channel", str(channel)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"rx_samples_to_file ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def check_ramp(got):
    """None, or where the counter breaks."""
    start = int.from_bytes(got[:4], "little")
    count = len(got) // 4
    want = array.array("I", ((start + k) & 0xFFFFFFFF for k in range(count)))
    return first_difference(got, want.tobytes())


def check_cycle(antenna):
    """A check for a file that repeats `antenna`."""
    def check(got):
        # Eight samples of a random file occur once.
        at = (antenna + antenna[:32]).find(got[:32])
        if at < 0 or at % 4:
            return "the first samples are not in the antenna's file"
        repeats = len(got) // len(antenna) + 2
        return first_difference(got, (antenna * repeats)[at:at + len(got)])
    return check


def run(name, radio_options, channel, check, options, folder):
    """One case: record until UHD reports no overflow, then check."""
    path = os.path.join(folder, "recording.sc16")
    for attempt in range(1, ATTEMPTS + 1):
        with Radio(*radio_options) as radio:
            begin = time.monotonic()
            said = record(radio, path, options, channel)
            wall_s, cpu_s = time.monotonic() - begin, radio.cpu_seconds()
        with open(path, "rb") as file:
            got = file.read()
        if len(got) == 4 * options.nsamps:
            wrong = check(got)
            if wrong is None:
                print(f"{name}: {options.nsamps} samples exact at {options.rate / 1e6:g} MS/s "
                      f"(attempt {attempt}, {wall_s:.1f} s with opening, radio {cpu_s:.2f} s CPU)")
                return True
        else:
            wrong = f"{len(got)} bytes instead of {4 * options.nsamps}"
        if not re.search(r"^O|Got an overflow", said, re.MULTILINE):
            print(f"{name}: {wrong}\n{said}")
            return False
        print(f"{name}: UHD reports an overflow on attempt {attempt}: {wrong}")
    return False


def main():
    """All cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=5e6)
    parser.add_argument("--nsamps", type=int, default=5_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        antenna = random.Random(1).randbytes(4 * ANTENNA_SAMPLES)
        antenna_path = os.path.join(folder, "antenna.sc16")
        with open(antenna_path, "wb") as file:
            file.write(antenna)
        ramp, repeated = ["--rx-antenna", "ramp"], ["--rx-antenna", f"file:{antenna_path}"]
        results = [
            run("ramp", ramp, 0, check_ramp, options, folder),
            run("file", repeated, 0, check_cycle(antenna), options, folder),
            run("channel 1", ramp + repeated, 1, check_cycle(antenna), options, folder),
        ]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
