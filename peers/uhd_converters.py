#!/usr/bin/python3
"""UHD's converters and ours give the same samples, for every pair of formats that both have.

UHD names two families. `sc16_chdr` and `sc8_chdr` lie as ours do. The `item32_le` formats are 32-bit
little-endian items with I in the upper half: for sc16 and sc8 the bytes of each item are reversed
(in units of a part) against ours; `sc12_item32_le` is our sc12.

To the user every bit must be equal. To the wire UHD rounds by implementation: a part may differ by
one, and saturation is left out, where UHD's implementations differ among themselves.

Usage: peers/uhd_converters.py
Exit status: 0 equal, 1 not, 77 skipped because a compiler or UHD's headers are not there.
"""

import array
import os
import random
import shutil
import subprocess
import sys
import tempfile

from common import ROOT, example, skip

# UHD 4.3 leaves the last samples out (sc8_item32_le to fc64) when this is no multiple of eight.
SAMPLES = 8 * 997
# Wire bytes of a sample, and array's type of a user's part.
WIRE_BYTES = {"sc16": 4, "sc12": 3, "sc8": 2}
USER_TYPES = {"fc32": "f", "fc64": "d", "sc16": "h", "sc8": "b"}
# Our wire format, UHD's name, user format, bytes of a part where the item is turned round, and what
# our scale is when UHD's is 1.
PAIRS = [
    ("sc16", "sc16_chdr", "fc32", 0, 1), ("sc16", "sc16_chdr", "fc64", 0, 1),
    ("sc16", "sc16_chdr", "sc16", 0, 1), ("sc16", "sc16_item32_le", "fc32", 2, 1),
    ("sc16", "sc16_item32_le", "fc64", 2, 1), ("sc16", "sc16_item32_le", "sc16", 2, 1),
    ("sc8", "sc8_chdr", "sc8", 0, 1), ("sc8", "sc8_item32_le", "fc32", 1, 1),
    ("sc8", "sc8_item32_le", "fc64", 1, 1), ("sc8", "sc8_item32_le", "sc8", 1, 1),
    ("sc12", "sc12_item32_le", "fc32", 0, 1), ("sc12", "sc12_item32_le", "sc16", 0, 16),
]


def build(folder):
    """The path of the program around UHD's converters."""
    compiler = shutil.which("g++")
    if compiler is None:
        skip("no g++")
    program = os.path.join(folder, "uhd_converters")
    command = [compiler, "-O1", "-o", program, os.path.join(ROOT, "peers/uhd_converters.cpp"),
               *os.environ.get("UHD_CXXFLAGS", "").split(), "-luhd"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if "error" in line.lower()]
        skip(f"no libuhd-dev to build against: {(lines or ['?'])[0]}")
    return program


def ours():
    """The path of our example program; built here unless MILLSTREAM_BUILT is set."""
    if "MILLSTREAM_BUILT" in os.environ:
        return example("millstream-radio", "convert_bytes")[0]
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    command = ["cargo", "build", "--quiet", "--locked", "-p", "millstream-radio",
               "--example", "convert_bytes"]
    if subprocess.run(command, cwd=ROOT, timeout=280, check=False).returncode != 0:
        sys.exit("our example convert_bytes does not build")
    return program


def run(command, data):
    """The output of a converter."""
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"{command} failed: {done.stderr.decode(errors='replace')}")
    return done.stdout


def turn(data, part):
    """Reverses the parts of each 32-bit item; no part is 0 bytes long."""
    if part == 0:
        return data
    items = (data[at:at + 4] for at in range(0, len(data), 4))
    return b"".join(b"".join(item[at:at + part] for at in range(4 - part, -1, -part))
                    for item in items)


def integers(program, wire, data):
    """A wire buffer's parts as whole numbers, by our own converter."""
    parts = array.array("h")
    parts.frombytes(run([program, "to-user", wire, "sc16", "1"], data))
    return parts


def check(programs, pair, rng):
    """One pair of formats, both ways; returns the largest difference to the wire."""
    us, uhd = programs
    wire, name, user, part, one = pair
    # UHD rounds twice from sc12; with a power of two there is nothing to round.
    real = 1 / 4096 if wire == "sc12" else 1 / 32767
    scale = real if user.startswith("fc") else 1
    packed = rng.randbytes(SAMPLES * WIRE_BYTES[wire])
    size = SAMPLES * 2 * array.array(USER_TYPES[user]).itemsize
    got = run([us, "to-user", wire, user, repr(scale * one)], packed)
    want = run([uhd, name, user, repr(scale), str(SAMPLES), str(size)], turn(packed, part))
    if got != want:
        at = next(at for at, pair in enumerate(zip(got, want)) if pair[0] != pair[1])
        sys.exit(f"{name} to {user}: byte {at} is {got[at]:#x}, UHD's is {want[at]:#x}")
    # What came back is in range, so that nothing saturates on the way to the wire.
    inverse = 1 / scale
    back = run([us, "to-wire", wire, user, repr(inverse / one)], got)
    theirs = run([uhd, user, name, repr(inverse), str(SAMPLES), str(len(packed))], got)
    parts, others = integers(us, wire, back), integers(us, wire, turn(theirs, part))
    if back != packed:
        sys.exit(f"{user} to {wire}: our own samples do not come back")
    worst = max(abs(a - b) for a, b in zip(parts, others))
    if worst > 1:
        sys.exit(f"{user} to {name}: a part differs by {worst}")
    return worst


def main():
    """Compares every pair."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        programs = (ours(), build(folder))
        for pair in PAIRS:
            worst = check(programs, pair, random.Random(seed))
            print(f"{pair[1]} and {pair[2]}: equal to the user, within {worst} to the wire")


if __name__ == "__main__":
    main()
