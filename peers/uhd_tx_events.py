#!/usr/bin/python3
"""Stock UHD transmit and latency tools against an emulated radio, their reports parsed.

  tx_timed_samples   the burst goes out at its time and is acknowledged
  tx_bursts          a burst on each of two channels
  latency_test       at a generous turnaround every burst is in time and acknowledged, at an
                     impossible one every burst is late
  test_messages      burst ACK, underflow, time error and late command, none failed

UHD prints U, L and S as such events occur; where none is asked for, none may be printed.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import re
import sys
import time

from common import Radio, uhd_example, uhd_output

RATE_HZ = 1e6
SAMPLES = 10_000
BURST_AHEAD_S = 0.5
RUNS = 20
# A pause of a busy machine is tens of milliseconds; a burst cannot be in time within a sample.
# At 0.25 s the tool gives up some acknowledgements just before they are due.
GENEROUS_S, IMPOSSIBLE_S = 0.1, 1e-6
ATTEMPTS = 3
MESSAGE_TESTS = 30
CATEGORIES = ["Burst ACK", "Underflow", "Time Error", "Late Command"]
# Four seconds of receive buffer: no stall of a busy machine shows as an overrun.
PATIENT = ["--rx-buffer-samples", str(int(4 * RATE_HZ))]


def fail(name, problem, said):
    """Ends the peer with what the tool said."""
    sys.exit(f"{name}: {problem}\n{said}")


def check_burst(name, radio, *options):
    """A tool that sends one burst; what it said."""
    said = uhd_output(name, "--args", f"addr={radio.addr}", "--rate", str(RATE_HZ),
                      "--nsamps", str(SAMPLES), "--secs", str(BURST_AHEAD_S), *options)
    sent = sum(int(count) for count in re.findall(r"Sent packet: (\d+) samples", said))
    if sent != SAMPLES:
        fail(name, f"it sent {sent} samples, not {SAMPLES}", said)
    if re.search(r"^[ULS]+(?![a-z])", said, re.MULTILINE):
        fail(name, "it reports an underflow, a late packet or a sequence error", said)
    return said


def check_timed_samples(radio):
    """UHD sees the acknowledgement."""
    said = check_burst("tx_timed_samples", radio)
    if "Waiting for async burst ACK... success" not in said:
        fail("tx_timed_samples", "the burst was not acknowledged", said)
    print(f"tx_timed_samples: {SAMPLES} samples sent at their time and acknowledged")


def check_bursts():
    """The tool waits for a tenth of a second only, however far ahead its burst is: so the radio
    counts."""
    with Radio() as radio:
        said = check_burst("tx_bursts", radio, "--channels", "0,1")
        time.sleep(BURST_AHEAD_S)
    counted = {name: count for name, count in radio.counters.items() if name.startswith("tx_")}
    want = {"tx_samples": 2 * SAMPLES, "tx_bursts": 2, "tx_burst_acks": 2}
    events = ["tx_late_packets", "tx_underflows", "tx_sequence_errors", "tx_overflow_packets"]
    if any(counted[name] != count for name, count in want.items()) \
            or any(counted[name] for name in events):
        fail("tx_bursts", f"the radio counts {counted}", said)
    print(f"tx_bursts --channels 0,1: {SAMPLES} samples on each channel, the radio counts {want}")


def latency(radio, turnaround_s):
    """What latency_test counts at a turnaround."""
    said = uhd_output("latency_test", "--args", f"addr={radio.addr}", "--rate", str(RATE_HZ),
                      "--nruns", str(RUNS), "--rtt", f"{turnaround_s:.9f}")
    counts = {}
    for key, pattern in [("acks", r"ACKs received: +(\d+)/"), ("underruns", r"Underruns: +(\d+)"),
                         ("late", r"Late packets: +(\d+)"), ("other", r"Other errors: +(\d+)")]:
        found = re.search(pattern, said)
        if found is None:
            fail("latency_test", f"its summary has no {key}", said)
        counts[key] = int(found[1])
    return counts, said


def check_latency(radio):
    """All in time, then all late. A machine too busy for the first gets further attempts."""
    for turnaround_s, want in [
            (GENEROUS_S, {"acks": RUNS, "underruns": 0, "late": 0, "other": 0}),
            (IMPOSSIBLE_S, {"acks": 0, "underruns": 0, "late": RUNS, "other": 0})]:
        for attempt in range(1, ATTEMPTS + 1):
            counts, said = latency(radio, turnaround_s)
            if counts == want:
                break
            print(f"latency_test --rtt {turnaround_s}: {counts} on attempt {attempt}")
        else:
            fail(f"latency_test --rtt {turnaround_s}", f"{counts}, not {want}", said)
        print(f"latency_test --rtt {turnaround_s}: {counts}")


def check_messages(radio):
    """Its tests are drawn by chance: repeated until each category had a turn."""
    successes = dict.fromkeys(CATEGORIES, 0)
    for _attempt in range(ATTEMPTS):
        said = uhd_output("test_messages", "--args", f"addr={radio.addr}",
                          "--ntests", str(MESSAGE_TESTS), timeout_s=100)
        for category in CATEGORIES:
            found = re.search(rf"Test {category} +-> +(\d+) successes, +(\d+) failures", said)
            if found is None or int(found[2]):
                fail("test_messages", f"{category} failed", said)
            successes[category] += int(found[1])
        if all(successes.values()):
            print(f"test_messages: {successes}, no failure")
            return
    fail("test_messages", f"a category never had a turn: {successes}", said)


def main():
    """All cases."""
    uhd_example("latency_test")
    with Radio(*PATIENT) as radio:
        check_timed_samples(radio)
        check_latency(radio)
        check_messages(radio)
    check_bursts()


if __name__ == "__main__":
    main()
