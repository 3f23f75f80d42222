"""Figures of the Python package: what a call costs, and how close a Python loop comes to one in Rust.

    python python/measure.py
    python python/measure.py --archive

The radio is emulated in this process, or is the one of the argument (addr=...). Python and Rust read the same stream in
turns: recv_into() against skip(), which reads in Rust into memory of its own, with blocks of 65536 samples. With --archive:
how long it takes to open a SigMF archive of 1 GiB and to take samples from its middle, here and with SigMF's own package.
"""

import json
import statistics
import sys
import tarfile
import tempfile
import time

import numpy as np

import millstream

BLOCK = 65_536
PAIRS = 25


def per_call(radio):
    """Nanoseconds of a call of recv_into for one sample that is there already."""
    out = np.empty(1, np.complex64)
    calls = 4_000
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


def throughput(radio, form, samples):
    """Samples per second of both loops, in turns, from a radio that always has more."""
    python, rust, ratios = [], [], []
    with radio.receive(format=form) as stream:
        out = stream.empty(BLOCK)
        stream.skip(samples)
        for _ in range(PAIRS):
            begin, done = time.perf_counter(), 0
            while done < samples:
                done += stream.recv_into(out).samples
            python.append(done / (time.perf_counter() - begin))
            begin = time.perf_counter()
            done = stream.skip(samples)
            rust.append(done / (time.perf_counter() - begin))
            ratios.append(python[-1] / rust[-1])
    print(f"{form}: {statistics.median(python) / 1e6:.0f} MS/s with recv_into, "
          f"{statistics.median(rust) / 1e6:.0f} MS/s in Rust, ratio {statistics.median(ratios):.3f} "
          f"({min(ratios):.3f} to {max(ratios):.3f})")


def write_archive(path):
    """A SigMF archive of 1 GiB; its samples are a hole in the file, which reads as zeros."""
    meta = {"global": {"core:datatype": "ci16_le", "core:version": "1.0.0", "core:sample_rate": 1e6},
            "captures": [{"core:sample_start": 0}], "annotations": []}
    meta = json.dumps(meta).encode()
    with open(path, "wb") as file:
        for name, size in (("one/one.sigmf-meta", len(meta)), ("one/one.sigmf-data", 1 << 30)):
            entry = tarfile.TarInfo(name)
            entry.size = size
            file.write(entry.tobuf(tarfile.GNU_FORMAT))
            if name.endswith("meta"):
                file.write(meta + bytes(-size % 512))
            else:
                file.seek(size, 1)
        file.write(bytes(1024))


def archive():
    """Milliseconds to open the archive and to convert 100 000 samples of its middle."""
    def ours(path):
        recording = millstream.open_recording(path)
        return recording.complex64(len(recording) // 2, 100_000)

    def theirs(path):
        recording = sigmf.fromfile(path)
        return recording.read_samples(len(recording) // 2, 100_000)

    ways = {"millstream": ours}
    try:
        import sigmf
        ways[f"sigmf {sigmf.__version__}"] = theirs
    except ImportError:
        print("SigMF's own package is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/one.sigmf"
        write_archive(path)
        for name, way in ways.items():
            took = []
            for _ in range(5):
                begin = time.perf_counter()
                assert len(way(path)) == 100_000
                took.append((time.perf_counter() - begin) * 1e3)
            print(f"{name}: {min(took):.1f} to {max(took):.1f} ms to open 1 GiB and take 100000 samples")


def main():
    """All figures."""
    if sys.argv[1:] == ["--archive"]:
        archive()
        return
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
            cpu_per_sample(radio, form, 5_000_000)
        radio.set_rate(500e6)
        for form in ("sc16", "cf32"):
            throughput(radio, form, 20_000_000)
    if emulated is not None:
        emulated.close()


if __name__ == "__main__":
    main()
