"""Figures of the Python package: what a call costs, and how close a Python loop comes to one in Rust.

    python python/measure.py

The radio is emulated in this process, or is the one of the argument (addr=...). Python and Rust read the same stream in
turns: recv_into() against skip(), which reads in Rust into memory of its own, with blocks of 65536 samples.
"""

import statistics
import sys
import time

import numpy as np

import millstream

BLOCK = 65_536
PAIRS = 5


def per_call(radio):
    """Nanoseconds of a call of recv_into for one sample that is there already."""
    out = np.empty(1, np.complex64)
    calls = 20_000
    figures = []
    with radio.receive(recv_queue_bytes=8 << 20) as stream:
        stream.skip(BLOCK)
        time.sleep(0.2)
        for _ in range(PAIRS):
            begin = time.perf_counter_ns()
            for _ in range(calls):
                stream.recv_into(out)
            figures.append((time.perf_counter_ns() - begin) / calls)
            time.sleep(0.1)
    begin = time.perf_counter_ns()
    for _ in range(calls):
        pass
    loop = (time.perf_counter_ns() - begin) / calls
    print(f"a call of recv_into for one sample: {statistics.median(figures) - loop:.0f} ns "
          f"(of {PAIRS} times {calls} calls; least {min(figures) - loop:.0f} ns)")


def cpu_per_sample(radio, form, samples):
    """CPU time of this thread per sample: in a loop of recv_into, and in one of skip, in turns."""
    ratios, python, rust = [], [], []
    with radio.receive(format=form) as stream:
        out = stream.empty(BLOCK)
        stream.skip(BLOCK)
        for _ in range(PAIRS):
            begin, done = time.thread_time_ns(), 0
            while done < samples:
                done += stream.recv_into(out).samples
            python.append((time.thread_time_ns() - begin) / done)
            begin = time.thread_time_ns()
            done = stream.skip(samples)
            rust.append((time.thread_time_ns() - begin) / done)
            ratios.append(python[-1] / rust[-1])
        ledger = stream.ledger
    print(f"{form}: {statistics.median(python):.2f} ns of CPU per sample with recv_into, "
          f"{statistics.median(rust):.2f} in Rust, ratio {statistics.median(ratios):.3f} "
          f"({min(ratios):.3f} to {max(ratios):.3f}); {ledger.lost_total} of {ledger.expected} lost")


def fastest(radio, form):
    """The highest of some rates without a loss in a second and a half, by each loop."""
    best = {"recv_into": 0.0, "skip": 0.0}
    failed = set()
    for rate in (5e6, 10e6, 15e6, 20e6, 25e6, 30e6, 40e6, 50e6, 60e6, 80e6, 100e6, 125e6):
        rate = radio.set_rate(rate)
        for way in best:
            if way in failed:
                continue
            # One stall of a busy machine is not a limit.
            for _ in range(2):
                with radio.receive(format=form, samples=int(1.5 * rate) // 8 * 8) as stream:
                    out, got = stream.empty(BLOCK), None
                    while way == "recv_into" and (got is None or not got.end):
                        got = stream.recv_into(out)
                    if way == "skip":
                        stream.skip(int(2 * rate))
                    lost = stream.ledger.lost_total
                if lost == 0:
                    best[way] = rate
                    break
            else:
                failed.add(way)
    print(f"{form}: without a loss up to {best['recv_into'] / 1e6:.0f} MS/s with recv_into, "
          f"{best['skip'] / 1e6:.0f} MS/s in Rust")


def main():
    """All figures."""
    emulated = None
    if len(sys.argv) > 1:
        args = sys.argv[1]
    else:
        emulated = millstream.EmulatedRadio(
            ["ramp"], device="e320-radio", any_rate=True, buffer_samples=1 << 26
        )
        args = emulated.args
    with millstream.Radio(args) as radio:
        radio.set_rate(20e6)
        per_call(radio)
        for form in ("sc16", "cf32"):
            cpu_per_sample(radio, form, 20_000_000)
        for form in ("sc16", "cf32"):
            fastest(radio, form)
    if emulated is not None:
        emulated.close()


if __name__ == "__main__":
    main()
