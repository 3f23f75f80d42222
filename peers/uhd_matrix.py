#!/usr/bin/python3
"""What UHD's tools do with each emulated device with a stock image, as a table: a row a device, a column a use.

  probe      `uhd_usrp_probe` finds its blocks
  receive    `rx_samples_to_file` at the rate of the radio: the antenna's counter, every sample
  Python     every channel from a time on, by UHD's Python API: each sample is the one of its tick
  transmit   `tx_samples_from_file`: what the radio transmits is the file, bit by bit
  timed      `test_timed_commands`: commands not before their times, and a reception that begins at its time
  benchmark  `benchmark_rate`: a channel in and one out, nothing late, lost or dropped
  replay     `rfnoc_replay_samples_from_file`: the radio transmits the file, bit by bit; an E310 and an E320,
             whose images have no replay block, get one

At 1 GHz the oscillators need no help of the DDC and DUC, which then pass samples at the rate of the radio as they are.

Usage: peers/uhd_matrix.py [DEVICE...]
Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import array
import contextlib
import io
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from common import Radio, first_difference, skip, uhd_example, uhd_output

os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "error")
try:
    import numpy as np
    import uhd
except ImportError as missing:
    skip(f"{missing} (Debian packages python3-uhd and python3-numpy)")

# Rate of the radio, speed of its clock beside ours, rate for benchmark_rate, channels, blocks, what else it gets for replay.
DEVICES = {
    "e310": (16e6, 0.1, 1e6, 2, ["Radio#0"], ["--extra-blocks"]),
    "e320": (16e6, 0.1, 1e6, 2, ["DUC#0", "DDC#0", "Radio#0", "DmaFIFO#0"], ["--extra-blocks"]),
    "n310": (125e6, 0.02, 1.25e6, 4, ["DUC#1", "DDC#1", "Radio#1", "Replay#0"], []),
    "n320": (200e6, 0.02, 2e6, 2, ["DUC#1", "DDC#1", "Radio#1", "Replay#0"], []),
    "x410": (245.76e6, 0.01, 1.92e6, 4, ["DUC#1", "DDC#1", "Radio#1", "Replay#0"], []),
}
TUNED_HZ = 1e9
SAMPLES, REPLAYED, ALIGNED = 300_003, 50_002, 20_003
# Wall time between a command and its time, and for the radio to play what it still has.
LEAD_S, REST_S = 0.4, 1.0
FULL_SCALE = 32767
# With a clock five times slower, a large buffer for receiving and one of 0.4 s for transmitting no stall of a busy machine
# shows as a loss. A larger one would be a time-out for UHD, which awaits a report per eighth of it in a tenth of a second.
SLOWER, RX_BUFFER, TX_BUFFER_S, BENCHMARK_S = 0.2, 1 << 26, 0.4, 2
# Time-outs of UHD are pauses of a busy machine: uhd_benchmark_rate.py asks for none.
ZERO = ["dropped samples", "overruns detected", "sequence errors (Tx)", "sequence errors (Rx)",
        "underruns detected", "late commands"]


def probe(args, device):
    """The blocks of the device."""
    done = subprocess.run(["uhd_usrp_probe", "--args", args], text=True, timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    blocks = DEVICES[device][4]
    if done.returncode != 0 or not all(block in done.stdout for block in blocks):
        sys.exit(f"{device}: uhd_usrp_probe ended with {done.returncode}:\n{done.stdout}")
    return f"{len(blocks)} blocks"


def receive(args, device, folder):
    """A counter without a gap."""
    path = os.path.join(folder, "received.sc16")
    uhd_output("rx_samples_to_file", "--args", args, "--type", "short", "--file", path, "--freq", str(TUNED_HZ),
               "--rate", str(DEVICES[device][0]), "--nsamps", str(SAMPLES))
    with open(path, "rb") as file:
        got = file.read()
    first = int.from_bytes(got[:4], "little")
    want = array.array("I", ((first + k) & 0xFFFFFFFF for k in range(SAMPLES))).tobytes()
    wrong = f"{len(got)} bytes" if len(got) != len(want) else first_difference(got, want)
    if wrong:
        sys.exit(f"{device}: rx_samples_to_file: {wrong}")
    return f"{SAMPLES} exact"


def by_python(args, device):
    """All channels, of the commanded ticks."""
    rate_hz, scale, _, count, _, _ = DEVICES[device]
    channels = list(range(count))
    radio = uhd.usrp.MultiUSRP(args)
    radio.set_rx_rate(rate_hz)
    for channel in channels:
        radio.set_rx_freq(uhd.types.TuneRequest(TUNED_HZ), channel)
    radio.set_time_now(uhd.types.TimeSpec(0.0))
    stream = uhd.usrp.StreamArgs("fc32", "sc16")
    stream.channels = channels
    streamer = radio.get_rx_stream(stream)
    start = radio.get_time_now().to_ticks(rate_hz) + round(LEAD_S * scale * rate_hz)
    # It prints a line for every tenth of a second that it waits.
    with contextlib.redirect_stdout(io.StringIO()):
        samples = radio.recv_num_samps(ALIGNED, TUNED_HZ, rate_hz, channels, 0,
                                       uhd.types.TimeSpec.from_ticks(start, rate_hz), streamer)
    low, high = (np.rint(part * FULL_SCALE).astype(np.int64) & 0xFFFF for part in (samples.real, samples.imag))
    wrong = np.count_nonzero((high << 16 | low) != start + np.arange(ALIGNED))
    if samples.shape != (count, ALIGNED) or wrong:
        sys.exit(f"{device}: Python: {samples.shape} samples, of which {wrong} are not those of their ticks")
    return f"{count} x {ALIGNED} exact"


def transmitted(name, device, served, path, want):
    """Compares what the radio transmitted with a file; the radio has ended. Where a busy machine lets it run dry, no
    sample is lost."""
    with open(path, "rb") as file:
        got = file.read()
    wrong = f"{len(got)} bytes, not {len(want)}" if len(got) != len(want) else first_difference(got, want)
    if wrong:
        sys.exit(f"{device}: {name}: {wrong}, {served.counters['tx_underflows']} underflows")
    return f"{len(want) // 4} exact"


def send_file(tool, args, device, folder, count):
    """Has a tool transmit a file of random samples; returns them."""
    path, want = os.path.join(folder, "source.sc16"), random.Random(count).randbytes(4 * count)
    with open(path, "wb") as file:
        file.write(want)
    shape = ["--nsamps", str(count)] if "replay" in tool else ["--type", "short"]
    uhd_output(tool, "--args", args, "--file", path, "--rate", str(DEVICES[device][0]), "--freq", str(TUNED_HZ), *shape)
    time.sleep(REST_S)
    return want


def timed(args, device):
    """What the tool finds out about times."""
    said = uhd_output("test_timed_commands", "--args", args)
    late = [float(us) for us in re.findall(r"Difference of response time \d: (-?[\d.]+) us", said)]
    first = re.search(r"first packet: (-?[\d.]+) us", said)
    # How late a reading comes is up to the machine; it must not come early.
    if "on this hardware... pass" not in said or len(late) != 2 or min(late) < 0 or not first or abs(float(first[1])) > 1:
        sys.exit(f"{device}: test_timed_commands:\n{said}")
    return f"start {float(first[1]):.2f} us off"


def benchmark(args, device):
    """No count but those of samples."""
    rate = str(DEVICES[device][2])
    said = uhd_output("benchmark_rate", "--args", args, "--rx_rate", rate, "--tx_rate", rate, "--channels", "0",
                      "--duration", str(BENCHMARK_S))
    counts = {name: int(n) for name, n in re.findall(r"Num ([\w ()]+): +(\d+)", said)}
    least = 0.8 * BENCHMARK_S * SLOWER * DEVICES[device][2]
    took = [counts.get(f"{way} samples", 0) for way in ("received", "transmitted")]
    if any(counts.get(name) != 0 for name in ZERO) or min(took) < least:
        sys.exit(f"{device}: benchmark_rate: at least {least:.0f} samples were to pass\n{said}")
    return f"{took[0]} in, {took[1]} out"


def row(device, folder):
    """The results of a device, by column."""
    sent = os.path.join(folder, "sent.sc16")
    slow = ["--time-scale", str(DEVICES[device][1]), "--rx-buffer-samples", str(RX_BUFFER),
            "--tx-buffer-samples", str(SAMPLES)]
    cells = {}
    with Radio("--device", device, "--rx-antenna", "ramp", "--tx-out", sent, *slow) as served:
        args = f"addr={served.addr}"
        cells["probe"] = probe(args, device)
        cells["receive"] = receive(args, device, folder)
        cells["Python"] = by_python(args, device)
        want = send_file("tx_samples_from_file", args, device, folder, SAMPLES)
    cells["transmit"] = transmitted("tx_samples_from_file", device, served, sent, want)
    buffers = ["--rx-buffer-samples", str(RX_BUFFER),
               "--tx-buffer-samples", str(round(TX_BUFFER_S * SLOWER * DEVICES[device][2]))]
    with Radio("--device", device, "--rx-antenna", "ramp", "--time-scale", str(SLOWER), *buffers) as served:
        cells["timed"] = timed(f"addr={served.addr}", device)
        cells["benchmark"] = benchmark(f"addr={served.addr}", device)
    with Radio("--device", device, *DEVICES[device][5], "--tx-out", sent, *slow) as served:
        want = send_file("rfnoc_replay_samples_from_file", f"addr={served.addr}", device, folder, REPLAYED)
    cells["replay"] = transmitted("rfnoc_replay_samples_from_file", device, served, sent, want)
    return cells


def main():
    """All rows, one after the other: UHD gives a radio 20 ms to answer its search for a path."""
    uhd_example("test_timed_commands")
    if len(sys.argv) != 2:
        def apart(device):
            return subprocess.run([sys.executable, sys.argv[0], device], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        rows = []
        for device in sys.argv[1:] or DEVICES:
            rows.append(apart(device))
            print(rows[-1].stdout, end="", flush=True)
        sys.exit(max(done.returncode for done in rows))
    device, started = sys.argv[1], time.monotonic()
    version = subprocess.run(["uhd_usrp_probe", "--version"], text=True, check=True, stdout=subprocess.PIPE).stdout
    with tempfile.TemporaryDirectory() as folder:
        cells = row(device, folder)
    print(f"UHD {'.'.join(version.split('.')[:2])}, {device}: " +
          "; ".join(f"{name} {cell}" for name, cell in cells.items()) + f" ({time.monotonic() - started:.0f} s)")


if __name__ == "__main__":
    main()
