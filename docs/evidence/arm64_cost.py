#!/usr/bin/env python3
"""How many instructions does each kernel need per sample: scalar, as the compiler makes it, and in its fast form?

Builds tests that run one form of a kernel a number of times, runs them under QEMU's user-mode emulation with a log of
every instruction, and counts the lines. The difference between two numbers of repeats is the kernel alone.

scalar    plain Rust, while the compiler may not use vectors by itself (no-vectorize-loops, no-vectorize-slp)
compiler  the same plain Rust as it is compiled otherwise: the compiler uses NEON or SSE2 where it can
fast      what the receiver runs: on ARM64 the form for NEON; on x86-64 that for AVX2 (QEMU has no AVX-512). Kernels
          marked * are plain Rust in this form, too: on x86-64 the compiler may use AVX2 there

    docs/evidence/arm64_cost.py [--only WORD] [--no-x86]
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINES = ["aarch64", "x86_64"]
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
    ("dsp", "cost_of_the_rotation", "rotation *", 800),
    ("dsp", "cost_of_the_moments", "moments of samples *", 800),
    ("dsp", "cost_of_rounding", "rounding to 16 bits *", 832),
    ("dsp", "cost_of_the_sampler", "sampler, 48 taps", 800),
    ("dsp", "cost_of_a_short_filter", "filter, 32 taps", 832),
    ("dsp", "cost_of_a_long_filter", "filter, 832 taps", 32),
    ("dsp", "cost_of_scattered_taps", "4 groups of 32 scattered taps", 16),
    ("atsc", "cost_of_the_field_search", "field search *", 511),
    ("atsc", "cost_of_the_differences", "equaliser's errors *", 832),
    ("atsc", "cost_of_the_feedback", "decision feedback", 828),
    ("atsc", "cost_of_the_order", "Viterbi order of symbols *", 828),
    ("atsc", "cost_of_the_recursion", "Viterbi recursion", 828),
    ("atsc", "cost_of_the_traceback", "Viterbi traceback", 828),
]


# Options of rustc that keep the compiler from using vectors by itself.
SCALAR = "-C no-vectorize-loops -C no-vectorize-slp"


def programs(machine, crates, flags, folder):
    """Builds the unit tests of crates; returns their programs by crate, copied into a folder of their own.

    Cargo gives the programs of other flags the same names.
    """
    command = ["scripts/cross.sh", f"{machine}-unknown-linux-musl", "cargo", "test", "--release", "--lib", "--no-run"]
    packages = [word for crate in crates for word in ("-p", f"millstream-{crate}")]
    done = subprocess.run(command + ["--message-format=json"] + packages, cwd=ROOT, stdout=subprocess.PIPE, text=True,
                          env=os.environ | {"CROSS_RUSTFLAGS": flags})
    if done.returncode != 0:
        sys.exit("arm64_cost.py: the tests cannot be built: see above")
    built = [json.loads(line) for line in done.stdout.splitlines()]
    folder.mkdir()
    return {message["target"]["name"].removeprefix("millstream_"): shutil.copy(message["executable"], folder)
            for message in built if message.get("executable")}


def instructions(machine, program, test, form, repeats, folder):
    """Returns the instructions of a whole run."""
    log = folder / "log"
    os.mkfifo(log)
    variables = {"MILLSTREAM_FORM": form, "MILLSTREAM_REPEATS": str(repeats)}
    command = [f"qemu-{machine}", "-cpu", "max", "-singlestep", "-d", "exec,nochain", "-D", str(log)]
    command += [program, "--ignored", "--test-threads=1", test]
    run = subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE, text=True)
    count = 0
    with open(log, "rb") as lines:
        while piece := lines.read(1 << 20):
            count += piece.count(b"\n")
    log.unlink()
    if run.wait() != 0 or "test result: ok. 1 passed" not in run.stdout.read():
        sys.exit(f"arm64_cost.py: {test} did not pass: run {' '.join(command[:1] + command[8:])}")
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="measure only kernels with this word in the test's name")
    parser.add_argument("--no-x86", action="store_true", help="measure ARM64 alone")
    given = parser.parse_args()
    kernels = [kernel for kernel in KERNELS if given.only in kernel[1]]
    if not kernels:
        sys.exit(f"arm64_cost.py: no kernel's test has {given.only} in its name: read KERNELS in this file")
    crates = sorted({kernel[0] for kernel in kernels})
    machines = MACHINES[:1] if given.no_x86 else MACHINES
    heads = ["kernel"]
    for fast in ("NEON", "AVX2")[:len(machines)]:
        heads += ("scalar", "compiler", fast, f"{fast} / scalar")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        built = {machine: [programs(machine, crates, flags, folder / f"{machine}{len(flags)}") for flags in (SCALAR, "")]
                 for machine in machines}
        print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|")
        for crate, test, title, samples in kernels:
            line, more = f"| {title} |", -(-SAMPLES // samples)
            for machine in machines:
                scalar, normal = built[machine]
                costs = []
                for program, form in ((scalar, "scalar"), (normal, "scalar"), (normal, "fast")):
                    few, many = (instructions(machine, program[crate], test, form, n, folder) for n in (2, 2 + more))
                    costs.append((many - few) / more / samples)
                line += "".join(f" {value:.2f} |" for value in (*costs, costs[2] / costs[0]))
            print(line, flush=True)


main()
