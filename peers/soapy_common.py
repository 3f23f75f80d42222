"""Shared by the peers of the SoapySDR module: where the module is, and how its radios are opened."""

import itertools
import os
import re
import shutil
import subprocess
import sys

from common import built, skip

MODULES = os.environ.get("MILLSTREAM_SOAPY") or built("release")
# An emulated radio in the client's process. Each sample of a ramp is its own time; the large buffer keeps a busy machine
# from losing any that no fault takes.
RAMP = {"driver": "millstream", "radio": "emulated", "antenna": "ramp", "rx_buffer_samples": str(1 << 26)}


def use_module(*programs):
    """Lets SoapySDR find the module; skips the peer without it or a program. Returns the programs' paths."""
    module = os.path.join(MODULES, "libmillstreamSupport.so")
    if not os.path.exists(module):
        skip(f"no libmillstreamSupport.so in {MODULES} (run make soapy; it needs libsoapysdr-dev and g++)")
    loaded = subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", module],
                            capture_output=True, text=True, check=False)
    if newer := re.search(r"version `(GLIBC[\w.]*)' not found", loaded.stderr):
        skip(f"{module} was compiled for a newer Debian: it needs {newer[1]}")
    os.environ["SOAPY_SDR_PLUGIN_PATH"] = MODULES
    os.environ.setdefault("SOAPY_SDR_LOG_LEVEL", "WARNING")
    found = [shutil.which(program) for program in programs]
    for program, path in zip(programs, found):
        if path is None:
            skip(f"no {program}")
    return found


def drawn_gaps(packet, gaps=100, seed=19):
    """A fault that makes so many gaps of drawn length, and the samples of each in their order.

    The fault hits each packet with a chance of a half. Its generator is the published SplitMix64, so the list does not
    come from the side that is tested.
    """
    def lost():
        state, mask = seed, (1 << 64) - 1
        while True:
            state = (state + 0x9E3779B97F4A7C15) & mask
            word = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
            word = (word ^ word >> 27) * 0x94D049BB133111EB & mask
            yield (word ^ word >> 31) >> 63 == 0

    runs = itertools.groupby(lost())
    lengths = [len(list(run)) for hit, run in itertools.islice(runs, 2 * gaps) if hit][:gaps]
    return f"lose to_host data skip=50 p=0.5 seed={seed} count={sum(lengths)}", [length * packet for length in lengths]


def text_of(args):
    """Arguments as one text. The Python module of Debian 13 loses the values of a dictionary that opens a device."""
    return ",".join(f"{key}={value}" for key, value in args.items())
