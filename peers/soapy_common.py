"""Shared by the peers of the SoapySDR module: where the module is, and how its radios are opened."""

import os
import shutil

from common import ROOT, skip

MODULES = os.environ.get("MILLSTREAM_SOAPY", os.path.join(ROOT, "target/release"))
# An emulated radio in the client's process. Each sample of a ramp is its own time; the large buffer keeps a busy machine
# from losing any that no fault takes.
RAMP = {"driver": "millstream", "radio": "emulated", "antenna": "ramp", "rx_buffer_samples": str(1 << 26)}


def use_module(*programs):
    """Lets SoapySDR find the module; skips the peer without it or a program. Returns the programs' paths."""
    if not os.path.exists(os.path.join(MODULES, "libmillstreamSupport.so")):
        skip(f"no libmillstreamSupport.so in {MODULES} (run make soapy; it needs libsoapysdr-dev and g++)")
    os.environ["SOAPY_SDR_PLUGIN_PATH"] = MODULES
    os.environ.setdefault("SOAPY_SDR_LOG_LEVEL", "WARNING")
    found = [shutil.which(program) for program in programs]
    for program, path in zip(programs, found):
        if path is None:
            skip(f"no {program}")
    return found


def text_of(args):
    """Arguments as one text."""
    return ",".join(f"{key}={value}" for key, value in args.items())
