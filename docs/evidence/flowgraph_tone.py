#!/usr/bin/env python3
"""What a tone costs on its way to a radio: as a bare loop, as a flowgraph, and with GNU Radio and UHD beside them.

The bare loop is `bench rate --direction tx`, the flowgraph `graphs/radio-tone-tx.toml`, and the third a signal source, a
head and UHD's sink in GNU Radio (left out where it is not installed). Each sends a tone as floats at the same rate to an
emulated radio that is started for it, in turns in one run. The table shows the CPU time of the whole sending process for
10⁹ samples: that of a long run minus that of a short one, so the start does not count.

    docs/evidence/flowgraph_tone.py [--rounds N] [--rate HZ] [--seconds S] [--search]

With --search it looks for the highest rate without an underflow instead, by doubling and bisection.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../peers"))
from common import LABORATORY, MILLSTREAM, ROOT, Radio, die_with_parent  # noqa: E402  (found by the line above)

PYTHON = "/usr/bin/python3"
GNURADIO = """
import sys
from gnuradio import analog, blocks, gr, uhd
addr, rate, samples = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
graph = gr.top_block()
sink = uhd.usrp_sink(f"addr={addr},master_clock_rate={rate}", uhd.stream_args("fc32"))
sink.set_samp_rate(rate)
tone = analog.sig_source_c(rate, analog.GR_COS_WAVE, 100e3, 0.5)
graph.connect(tone, blocks.head(gr.sizeof_gr_complex, samples), sink)
graph.run()
"""
# Some 0.2 s at 20 MS/s: no short stall of a busy machine is an underflow.
RADIO = ["--any-rate", "--mtu", "9000", "--tx-buffer-samples", str(1 << 22)]


def commands():
    """Name and command line of each sender, as functions of address, rate and samples."""
    graph = os.path.join(ROOT, "graphs/radio-tone-tx.toml")

    def loop(addr, rate, samples):
        return [LABORATORY, "bench", "rate", "--direction", "tx", "--rate", str(rate), "--no-pin", "--json",
                "--duration", str(samples / rate), "--args", f"addr={addr}"]

    def flowgraph(addr, rate, samples):
        return [MILLSTREAM, "run", graph, "--json", "--set", f"args=addr={addr}", "--set", f"rate={rate}",
                "--set", f"samples={samples}"]

    def gnuradio(addr, rate, samples):
        return [PYTHON, "-c", GNURADIO, addr, str(rate), str(samples)]

    found = [("bare loop", loop), ("flowgraph", flowgraph)]
    there = subprocess.run([PYTHON, "-c", "from gnuradio import analog, uhd"], capture_output=True, check=False)
    if there.returncode == 0:
        return [*found, ("GNU Radio + UHD", gnuradio)]
    print("GNU Radio is left out: Debian package gnuradio", file=sys.stderr)
    return found


def send(command, rate, samples):
    """CPU seconds of the process, and what the radio counted."""
    with Radio(*RADIO) as radio, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command(radio.addr, rate, samples), stdout=said, stderr=subprocess.STDOUT,
                                   env={**os.environ, "UHD_LOG_CONSOLE_LEVEL": "error"}, preexec_fn=die_with_parent)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    return used.ru_utime + used.ru_stime, radio.counters, process.returncode, text


def is_whole(outcome, samples):
    """Whether every sample was transmitted without an underflow. The last ones may still wait in the radio's buffer:
    UHD's sink does not wait for them."""
    _, counters, status, _ = outcome
    taken = counters["tx_samples"] + counters["tx_waiting_samples"]
    return status == 0 and counters["tx_underflows"] == 0 and taken >= samples


def cost(command, rate, seconds):
    """CPU seconds for 10⁹ samples, and the underflows of the long run."""
    short, long = int(rate * seconds / 4), int(rate * seconds)
    outcomes = [send(command, rate, samples) for samples in (short, long)]
    for (_, counters, status, text), samples in zip(outcomes, (short, long)):
        if status != 0 and counters["tx_underflows"] == 0:
            sys.exit(f"it ended with {status}: {text}")
        if counters["tx_samples"] < samples * 0.99 and counters["tx_underflows"] == 0:
            sys.exit(f"the radio took {counters['tx_samples']} of {samples} samples: {text}")
    taken = [counters["tx_samples"] for _, counters, *_ in outcomes]
    spent = [cpu for cpu, *_ in outcomes]
    return (spent[1] - spent[0]) / (taken[1] - taken[0]) * 1e9, outcomes[1][1]["tx_underflows"]


def highest(command, seconds, step=5e6, most=1e9):
    """Highest rate without an underflow, in steps. A rate holds if two of three tries do: one stall of the machine
    must not end a search at its start."""
    def holds(steps):
        samples, whole = int(steps * step * seconds), []
        while whole.count(True) < 2 and whole.count(False) < 2:
            whole.append(is_whole(send(command, steps * step, samples), samples))
        return whole.count(True) == 2

    good, bad = 0, 1
    while bad * step <= most and holds(bad):
        good, bad = bad, bad * 2
    bad = min(bad, int(most / step) + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good * step / 1e6


def main():
    """All senders in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each")
    parser.add_argument("--rate", type=float, default=20e6, help="samples a second")
    parser.add_argument("--seconds", type=float, default=4, help="length of the long run, or of each try of --search")
    parser.add_argument("--search", action="store_true", help="the highest rate without an underflow")
    args = parser.parse_args()
    senders, seen, underflows = commands(), {}, {}
    for turn in range(args.rounds):
        # The order alternates.
        for name, command in senders if turn % 2 == 0 else reversed(senders):
            value, late = (highest(command, args.seconds), 0) if args.search else cost(command, args.rate, args.seconds)
            seen.setdefault(name, []).append(value)
            underflows[name] = underflows.get(name, 0) + late
            print(f"  {turn + 1} {name:<16} {value:.2f}", file=sys.stderr)
    what = "highest MS/s" if args.search else f"CPU s for 10^9 samples at {args.rate / 1e6:g} MS/s"
    last = "" if args.search else "  underflows"
    print(f"{'':<16} {what + ': median (range)':>44} {'to the bare loop':>24}{last}")
    base = seen[senders[0][0]]
    for name, _ in senders:
        values = seen[name]
        ratios = [value / other if other else float("nan") for value, other in zip(values, base)]
        print(f"{name:<16} {spread(values):>44} {spread(ratios):>24}" + ("" if args.search else f"  {underflows[name]:>10}"))


def spread(values):
    """Median and range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
