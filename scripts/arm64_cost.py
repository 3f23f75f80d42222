#!/usr/bin/env python3
"""How many instructions does each kernel need per sample on ARM64: scalar, as the compiler makes it, and with NEON?

Builds tests that run one form of a kernel a number of times, runs them under QEMU's user-mode emulation with a log of
every instruction, and counts the lines. The difference between two numbers of repeats is the kernel alone.

scalar    plain Rust, while the compiler may not use vectors by itself (no-vectorize-loops, no-vectorize-slp)
compiler  the same plain Rust as it is compiled otherwise: the compiler uses NEON where it can
NEON      the form that is written by hand

    scripts/arm64_cost.py [--only WORD]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "aarch64-unknown-linux-musl"
# Samples of one measurement: then a few instructions of the test program do not matter.
SAMPLES = 20_000
# Crate, test, kernel, and samples of one repeat.
KERNELS = [
    ("radio", "cost_of_sc16_to_fc32", "sc16 to fc32", 1000),
    ("radio", "cost_of_fc32_to_sc16", "fc32 to sc16", 1000),
    ("radio", "cost_of_sc12_to_fc32", "sc12 to fc32", 1000),
    ("radio", "cost_of_fc32_to_sc12", "fc32 to sc12", 1000),
    ("radio", "cost_of_sc8_to_fc32", "sc8 to fc32", 1000),
    ("radio", "cost_of_fc32_to_sc8", "fc32 to sc8", 1000),
    ("radio", "cost_of_sc16_to_fc64", "sc16 to fc64", 1000),
    ("radio", "cost_of_fc64_to_sc16", "fc64 to sc16", 1000),
    ("radio", "cost_of_sc16_to_sc8", "sc16 to sc8", 1000),
    ("dsp", "cost_of_the_sampler", "sampler, 48 taps", 800),
    ("dsp", "cost_of_a_short_filter", "filter, 32 taps", 832),
    ("dsp", "cost_of_a_long_filter", "filter, 832 taps", 32),
    ("dsp", "cost_of_scattered_taps", "4 groups of 32 scattered taps", 16),
    ("atsc", "cost_of_the_feedback", "decision feedback", 828),
    ("atsc", "cost_of_the_recursion", "Viterbi recursion", 828),
    ("atsc", "cost_of_the_traceback", "Viterbi traceback", 828),
]


# Options of rustc that keep the compiler from using vectors by itself.
SCALAR = "-C no-vectorize-loops -C no-vectorize-slp"


def programs(crates, flags):
    """Builds the unit tests of crates; returns their programs by crate."""
    command = ["scripts/cross.sh", TARGET, "cargo", "test", "--release", "--lib", "--no-run", "--message-format=json"]
    packages = [word for crate in crates for word in ("-p", f"millstream-{crate}")]
    done = subprocess.run(command + packages, cwd=ROOT, stdout=subprocess.PIPE, text=True,
                          env=os.environ | {"CROSS_RUSTFLAGS": flags})
    if done.returncode != 0:
        sys.exit("arm64_cost.py: the tests cannot be built: see above")
    built = [json.loads(line) for line in done.stdout.splitlines()]
    return {message["target"]["name"].removeprefix("millstream_"): message["executable"]
            for message in built if message.get("executable")}


def instructions(program, test, form, repeats, folder):
    """Returns the instructions of a whole run."""
    log = folder / "log"
    os.mkfifo(log)
    variables = {"MILLSTREAM_FORM": form, "MILLSTREAM_REPEATS": str(repeats)}
    command = ["qemu-aarch64", "-singlestep", "-d", "exec,nochain", "-D", str(log)]
    command += [program, "--ignored", "--test-threads=1", test]
    run = subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE, text=True)
    count = 0
    with open(log, "rb") as lines:
        while piece := lines.read(1 << 20):
            count += piece.count(b"\n")
    log.unlink()
    if run.wait() != 0 or "test result: ok. 1 passed" not in run.stdout.read():
        sys.exit(f"arm64_cost.py: {test} did not pass: run {' '.join(command[:1] + command[6:])}")
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="measure only kernels with this word in the test's name")
    only = parser.parse_args().only
    kernels = [kernel for kernel in KERNELS if only in kernel[1]]
    if not kernels:
        sys.exit(f"arm64_cost.py: no kernel's test has {only} in its name: read KERNELS in this file")
    crates = sorted({kernel[0] for kernel in kernels})
    built, scalar = programs(crates, ""), programs(crates, SCALAR)
    print("| kernel | scalar | compiler | NEON | NEON / scalar | NEON / compiler |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for crate, test, title, samples in kernels:
            costs, more = [], -(-SAMPLES // samples)
            for program, form in ((scalar, "scalar"), (built, "scalar"), (built, "neon")):
                few, many = (instructions(program[crate], test, form, n, pathlib.Path(folder)) for n in (2, 2 + more))
                costs.append((many - few) / more / samples)
            ratios = costs[2] / costs[0], costs[2] / costs[1]
            print(f"| {title} |" + "".join(f" {value:.2f} |" for value in (*costs, *ratios)), flush=True)


main()
