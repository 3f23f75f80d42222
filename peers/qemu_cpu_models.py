#!/usr/bin/env python3
"""Peer: QEMU's emulation of processors of several years. On each the program chooses the widest form of a conversion that
the processor has, its test of the forms finds none wrong, and the television receiver decodes the same bytes as here."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile

import common

# A model of QEMU, and the forms of conversions that may be chosen on it. `max` has what the version of QEMU can execute.
MODELS = {"Nehalem": ["scalar"], "Haswell": ["avx2"], "max": ["avx2", "avx512"]}
QEMU = "qemu-x86_64"
GRAPH = os.path.join(common.ROOT, "graphs/atsc-rx.toml")


def output(folder, command):
    """What a command printed; ends the peer when it fails, or finds a form wrong."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=common.LIMIT_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr[-2000:]}"
    assert "wrongly" not in done.stderr, done.stderr
    return done.stdout


def decoded(folder, before, name):
    """The hash of the packets that the television receiver finds in the signal."""
    out = f"{name}.ts"
    output(folder, [*before, common.MILLSTREAM, "run", GRAPH, "--plan", "single", "--set", "in=tv.cf32", "--set", f"out={out}"])
    with open(os.path.join(folder, out), "rb") as file:
        packets = file.read()
    assert len(packets) >= 188 * 500, f"{name}: only {len(packets)} bytes"
    return hashlib.sha256(packets).hexdigest()


def main():
    """Every model."""
    if shutil.which(QEMU) is None:
        common.skip(f"no {QEMU} (Debian package qemu-user)")
    told = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.search(r"(\d+)\.(\d+)", told).groups())) < (7, 2):
        common.skip(f"AVX2 needs QEMU 7.2 or later, and this is {told.splitlines()[0]}")
    if os.uname().machine != "x86_64":
        common.skip("the models are of x86-64")
    with tempfile.TemporaryDirectory() as folder:
        output(folder, [common.MILLSTREAM, "sim", "generate", "--out", "tv.cf32", "--cn", "25", "--duration", "0.15s"])
        expected = decoded(folder, [], "here")
        convert = ["bench", "convert", "--no-uhd", "--nsamps", "362", "--repeat", "1", "--duration", "1ms",
                   "--pair", "wire:sc16>fc32", "--json"]
        for model, forms in MODELS.items():
            before = [QEMU, "-cpu", model]
            results = json.loads(output(folder, [*before, common.LABORATORY, *convert]))["results"]
            has = [form["form"] for form in results["rows"][0]["forms"]]
            print(f"{model}: has {', '.join(has)}; uses {results['chosen']}", flush=True)
            assert results["chosen"] in forms and results["chosen"] == has[-1], results
            assert decoded(folder, before, model) == expected, f"{model}: other packets than on this machine"
        print(f"the receiver decoded the same packets on all of them and here: {expected[:16]}")


main()
