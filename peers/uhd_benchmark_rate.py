#!/usr/bin/python3
"""Stock benchmark_rate against an emulated radio: 2 receive and 2 transmit channels at once.

All thresholds are zero: one overrun, underrun, lost packet or sequence error fails the benchmark,
and the counts that have no threshold (late, time-outs) have to be zero too.

The rate is 1 MS/s per channel, and the radio's buffers hold 4 s (receive) and 0.4 s (transmit) of
it: on two shared cores the radio, UHD's threads and whatever else runs are paused for tens of
milliseconds at a time, which has to show as a delay and not as a loss. `millstream-lab bench rate` is
the place for high rates. The transmit buffer is not larger because UHD asks for one credit report
per eighth of it and counts a time-out when none comes for a tenth of a second.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import re
import sys

from common import Radio, uhd_output

RATE_HZ = 1_000_000
CHANNELS = 2
DURATION_S = 5
# Of the samples that fit into the duration; UHD starts its streams within it.
LEAST_SHARE = 0.8
THRESHOLDS = ["overrun", "underrun", "drop", "seq"]
ZERO = ["dropped samples", "overruns detected", "sequence errors (Tx)", "sequence errors (Rx)",
        "underruns detected", "late commands", "timeouts (Tx)", "timeouts (Rx)"]


def main():
    """One benchmark."""
    buffers = ["--rx-buffer-samples", str(4 * RATE_HZ),
               "--tx-buffer-samples", str(4 * RATE_HZ // 10)]
    options = [part for name in THRESHOLDS for part in (f"--{name}-threshold", "0")]
    with Radio("--rx-antenna", "ramp", *buffers) as radio:
        said = uhd_output("benchmark_rate", "--args", f"addr={radio.addr}",
                          "--rx_rate", str(RATE_HZ), "--tx_rate", str(RATE_HZ),
                          "--channels", ",".join(map(str, range(CHANNELS))),
                          "--duration", str(DURATION_S), *options)
    counts = {name: int(n) for name, n in re.findall(r"Num ([\w ()]+): +(\d+)", said)}
    wrong = [f"{name}: {counts.get(name)}" for name in ZERO if counts.get(name) != 0]
    least = round(LEAST_SHARE * CHANNELS * RATE_HZ * DURATION_S)
    wrong += [f"{name}: {counts.get(name)}, not at least {least}"
              for name in ("received samples", "transmitted samples")
              if counts.get(name, 0) < least]
    if wrong:
        sys.exit(f"benchmark_rate: {'; '.join(wrong)}\n{said}")
    print(f"benchmark_rate: {counts['received samples']} samples received and "
          f"{counts['transmitted samples']} sent in {DURATION_S} s, everything else zero")


if __name__ == "__main__":
    main()
