#!/usr/bin/python3
"""SoapySDRUtil with our module: what it finds, what it shows of a radio, and its rate test.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import re
import signal
import subprocess
import time

from common import Radio
from soapy_common import text_of, use_module

[UTIL] = use_module("SoapySDRUtil")
RATE_HZ = 1e6


def output(*options):
    """What the program printed, both streams."""
    done = subprocess.run([UTIL, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def found(text):
    """The radios in the output of --find, as dictionaries."""
    return [dict(re.findall(r"^ +(\w+) = (.*)$", part, re.MULTILINE)) for part in text.split("Found device")[1:]]


def lists_radios():
    with Radio("--device", "e320", count=2) as radio:
        args = {"driver": "millstream"}
        begin = time.monotonic()
        everywhere = found(output(f"--find={text_of(args)}"))
        search_s = time.monotonic() - begin
        assert {radio.addr, *radio.addrs} <= {one["addr"] for one in everywhere}, everywhere
        begin = time.monotonic()
        [one] = found(output(f"--find={text_of({**args, 'addr': radio.addr})}"))
        address_s = time.monotonic() - begin
        assert one["addr"] == radio.addr and one["product"] == "e320" and one["serial"] in one["label"], one
        # What does not change between two searches opens the same radio.
        assert found(output(f"--find={text_of({**args, 'addr': radio.addr})}")) == [one]
        assert found(output(f"--find={text_of({**args, 'serial': one['serial']})}")) == [one]
        assert not any(other.get("radio") for other in everywhere), "an emulated radio that nobody asked for"
        print(f"find: {1e3 * search_s:.0f} ms, with its address {1e3 * address_s:.0f} ms")
        begin = time.monotonic()
        shown = output(f"--probe={text_of({**args, 'addr': radio.addr})}")
        print(f"probe: {1e3 * (time.monotonic() - begin):.0f} ms")
    for part in ["driver=millstream", "hardware=e320", "Channels: 2 Rx, 2 Tx", "Timestamps: YES",
                 "Stream formats: CF32, CS16, CS12, CS8, CF64", "Native format: CS16 [full-scale=32767]", "Antennas: RX2, TX/RX",
                 "PGA gain range: [0, 76] dB", "RF freq range: [70, 6000] MHz", "Supports AGC: YES",
                 "Clock sources: internal, external", "ledger_lost (ledger_lost): 0 samples", "gaps - what a read returns"]:
        assert part in shown, f"{part} is missing in:\n{shown}"


def counts_a_rate():
    """The rate test has no end of its own, and then no status of success."""
    args = {"driver": "millstream", "radio": "emulated", "antenna": "ramp"}
    command = [UTIL, f"--args={text_of(args)}", f"--rate={RATE_HZ}", "--direction=RX"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=20)
    rates = [float(rate) for rate in re.findall(r"([\d.]+) Msps", text)]
    assert rates and abs(rates[-1] * 1e6 / RATE_HZ - 1) < 0.02, text
    assert not re.search(r"Overflows [1-9]", text), text
    print(f"rate: {rates[-1]} of {RATE_HZ / 1e6} MS/s")


lists_radios()
counts_a_rate()
