#!/usr/bin/python3
"""Compares our module with SoapyUHD on the same emulated radio.

  rates   the highest rate that each of them receives for a while without a loss, at MTU 1500 and 8000
  cost    the processor time of the reading thread: readStream, direct buffers, SoapyUHD, and the crate's own recv

The radio has processor 1 and the reading thread processor 0, both in real time (SCHED_FIFO), so that other programs
disturb little. The kernel stops real-time threads for 50 ms of each second in which they use all of it, so the radio's
buffer holds more than that. Root is needed. `soapy/measure.py [rates|cost]...`
"""

import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "peers"))

from common import Radio, built, die_with_parent  # noqa: E402
from soapy_common import use_module  # noqa: E402

RATES_MHZ = [50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900, 1000]
SECONDS, TRIES = 2, 3
RADIO_CPU, READER_CPU, PRIORITY = 1, 0, 20
BUFFER = 1 << 24  # samples


def serve(mtu):
    """An emulated radio with processor RADIO_CPU."""
    return Radio("--any-rate", "--rx-antenna", "ramp", "--mtu", str(mtu), "--rx-buffer-samples", str(BUFFER),
                 inside=("taskset", "-c", str(RADIO_CPU), "chrt", "-f", str(PRIORITY)))


def measured(command):
    """The JSON line of a reader; None when it failed."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60, check=False,
                              preexec_fn=die_with_parent, env={**os.environ, "SOAPY_RATE_CPU": str(READER_CPU)})
    except subprocess.TimeoutExpired:
        return None
    lines = [line[line.index("{"):] for line in done.stdout.splitlines() if "{\"rate_hz\"" in line]
    return json.loads(lines[-1]) if lines else None


def drivers(addr, rate):
    """How each driver opens the radio at a rate."""
    return {"millstream": f"driver=millstream,addr={addr}",
            "uhd": f"driver=uhd,type=e3xx,addr={addr},master_clock_rate={rate}"}


def is_lossless(result, rate):
    return (result is not None and result["overflows"] + result["errors"] + result["timeouts"] == 0
            and abs(result["rate_hz"] / rate - 1) < 0.01 and result["samples"] > 0.97 * rate * result["wall_s"])


def rates(reader):
    for mtu in (1500, 8000):
        for driver in ("millstream", "uhd"):
            best = 0
            for mhz in RATES_MHZ:
                rate, good = int(mhz * 1e6), 0
                for _ in range(TRIES):
                    with serve(mtu) as radio:
                        good += is_lossless(measured([reader, drivers(radio.addr, rate)[driver], str(rate), str(SECONDS),
                                                      "CS16"]), rate)
                print(f"  MTU {mtu}, {driver}: {mhz} MS/s, {good} of {TRIES} without a loss", flush=True)
                if good == TRIES:
                    best = mhz
                elif good == 0 and mhz > 1.3 * best:
                    break
            print(f"MTU {mtu}, {driver}: {best} MS/s in {TRIES} of {TRIES} runs of {SECONDS} s", flush=True)


def cost(reader):
    recv = built("release/examples/recv_cost")
    for rate in (50_000_000, 200_000_000, 400_000_000, 500_000_000):
        rows, lossless = {}, {}
        for turn in range(6):
            with serve(8000) as radio:
                ours, uhd = drivers(radio.addr, rate).values()
                commands = {"own recv": [recv, f"addr={radio.addr}", str(rate), str(SECONDS)],
                            "readStream CS16": [reader, ours, str(rate), str(SECONDS), "CS16"],
                            "direct CS16": [reader, ours, str(rate), str(SECONDS), "CS16", "direct"],
                            "readStream CF32": [reader, ours, str(rate), str(SECONDS), "CF32"],
                            "SoapyUHD CS16": [reader, uhd, str(rate), str(SECONDS), "CS16"],
                            "SoapyUHD CF32": [reader, uhd, str(rate), str(SECONDS), "CF32"]}
                # Each is first, second and so on once.
                for name, command in [*commands.items()][turn:] + [*commands.items()][:turn]:
                    result = measured(command)
                    if result is not None:
                        rows.setdefault(name, []).append(1e9 * result["cpu_s"] / result["samples"])
                        lossless[name] = lossless.get(name, 0) + is_lossless(result, rate)
        for name, costs in rows.items():
            costs.sort()
            print(f"{rate / 1e6:.0f} MS/s, {name}: {costs[len(costs) // 2]:.3f} s per Gsample "
                  f"({costs[0]:.3f} to {costs[-1]:.3f}, {lossless[name]} of {len(costs)} runs without a loss)", flush=True)


def main():
    use_module()
    parts = sys.argv[1:] or ["rates", "cost"]
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        reader = os.path.join(folder, "soapy_rate")
        source = os.path.join(ROOT, "peers/soapy_rate.cpp")
        subprocess.run(["c++", "-O2", "-std=c++14", "-o", reader, source, "-lSoapySDR"], check=True)
        for part in parts:
            {"rates": rates, "cost": cost}[part](reader)
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)


main()
