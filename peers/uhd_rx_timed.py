#!/usr/bin/python3
"""Stock rx_timed_samples and rx_multi_samples against emulated radios, their packets parsed.

  timed         one channel: the first sample at the commanded time, then no gap, all samples
  multi, now    two channels of one radio, time set at once
  multi, PPS    two channels of one radio, and four channels of two radios (two processes), time
                set at a PPS edge; UHD aligns the channels by their times or gives up

The tools print sizes and times of packets; `uhd_python_rx.py` checks values in the same settings.
The radio's buffer holds four seconds: no stall of a busy machine shows as an overrun.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import re
import sys

from common import Radio, uhd_example, uhd_output

RATE_HZ = 1_000_000
SAMPLES = 100_003
START_S = 0.5
PACKET = re.compile(r"Received packet: (\d+) samples, (\d+) full secs, ([0-9.]+) frac secs")
PATIENT = ["--rx-antenna", "ramp", "--rx-buffer-samples", str(4 * RATE_HZ)]
PPS_EDGES = ["1) catch time transition at pps edge", "2) set times next pps"]


def check(name, tool, options, start_s, phrases=()):
    """Runs the tool; its packets have to start at the time and follow each other without a gap."""
    said = uhd_output(tool, *options, "--rate", str(RATE_HZ), "--nsamps", str(SAMPLES),
                      "--secs", str(start_s))
    packets = [(int(n), int(s), float(f)) for n, s, f in PACKET.findall(said)]
    wrong = [f"it does not say {phrase!r}" for phrase in phrases if phrase not in said]
    if sum(samples for samples, _, _ in packets) != SAMPLES:
        wrong.append(f"{sum(samples for samples, _, _ in packets)} samples, not {SAMPLES}")
    tick = round(start_s * RATE_HZ)
    for samples, seconds, fraction in packets:
        got = seconds * RATE_HZ + round(fraction * RATE_HZ)
        if got != tick:
            wrong.append(f"a packet at tick {got}, not {tick}")
            break
        tick += samples
    if wrong:
        sys.exit(f"{name}: {'; '.join(wrong)}\n{said}")
    print(f"{name}: {SAMPLES} samples from {start_s} s on in {len(packets)} packets without a gap")


def main():
    """All cases."""
    uhd_example("rx_multi_samples")
    with Radio(*PATIENT) as one, Radio(*PATIENT) as two:
        alone, both = f"addr={one.addr}", f"addr0={one.addr},addr1={two.addr}"
        check("rx_timed_samples", "rx_timed_samples", ["--args", alone], START_S)
        check("rx_multi_samples, 2 channels, now", "rx_multi_samples",
              ["--args", alone, "--channels", "0,1", "--sync", "now"], START_S)
        check("rx_multi_samples, 2 channels, PPS", "rx_multi_samples",
              ["--args", alone, "--channels", "0,1", "--sync", "pps"], 1 + START_S, PPS_EDGES)
        check("rx_multi_samples, 4 channels of 2 radios, PPS", "rx_multi_samples",
              ["--args", both, "--channels", "0,1,2,3", "--sync", "pps"], 1 + START_S, PPS_EDGES)


if __name__ == "__main__":
    main()
