#!/usr/bin/python3
"""UHD's command lines of the guide "The emulated radio", as they stand there: people type them first.

Each block of code that begins with `millstream sim radio` and goes on with programs of UHD is done in
order, at another address. Then the files must be there that the guide says they write. Then the
example `gpio` runs, and finds the radio by the serial number that `uhd_find_devices` shows.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile

from common import ROOT, Radio, uhd_example, uhd_output

GUIDE = "docs/guides/emulated-radio.md"
PROGRAMS = ["uhd_usrp_probe", "rx_samples_to_file", "tx_waveforms", "uhd_find_devices"]
# Bytes that the guide's commands write at least: 4 for each of their samples.
FILES = {"tone.sc16": 4 * 5_000_000, "slow.sc16": 4 * 1_000_000, "tuned.sc16": 4 * 1_000_000,
         "sent.sc16": 4 * 4_000_000}


def blocks():
    """Blocks of indented lines, each a list of commands as words."""
    found, block = [], []
    with open(os.path.join(ROOT, GUIDE), encoding="utf-8") as guide:
        for line in guide:
            if line.startswith("    ") and line.strip():
                if block and block[-1].endswith("\\"):
                    block[-1] = block[-1][:-1] + line.strip()
                else:
                    block.append(line.strip())
            elif block:
                found.append(block)
                block = []
    has_uhd = [one for one in found if any(line.split()[0] in PROGRAMS for line in one)]
    return [[shlex.split(line, comments=True) for line in one] for one in has_uhd]


def follow(block, done):
    """Does the commands of a block with the radio that it begins with."""
    first = block[0]
    if first[:3] != ["millstream", "sim", "radio"] or first[-1] != "&":
        sys.exit(f"a block of {GUIDE} does not begin with a radio: {first}")
    options = first[3:-1]
    at = options.index("--addr")
    named = options[at + 1]
    # A busy machine must not lose samples that an idle one keeps.
    patient = ["--rx-buffer-samples", str(1 << 24)]
    with Radio(*options[:at], *options[at + 2:], *patient) as radio:
        for words in block[1:]:
            if words[0] not in PROGRAMS:
                continue
            here = [word.replace(named, radio.addr) for word in words]
            uhd_output(*here, timeout_s=120)
            done.append(words[0])
            print(f"as in the guide: {' '.join(words)}")


def find_by_serial():
    """A program passes on what find says: the default serial number has to be one for UHD."""
    with Radio() as radio:
        found = uhd_output("uhd_find_devices", "--args", f"addr={radio.addr}")
        serial = re.search(r"serial: (\S+)", found)
        if serial is None:
            sys.exit(f"uhd_find_devices shows no serial number:\n{found}")
        args = f"addr={radio.addr},serial={serial[1]}"
        uhd_output("uhd_usrp_probe", "--args", args)
        print(f"uhd_usrp_probe --args {args} finds it")
        # Pins do not read back what drives them here, so tests of its own fail; it used to crash.
        done = subprocess.run([uhd_example("gpio"), "--args", f"addr={radio.addr}"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              check=False)
        for part in ("Using GPIO bank: FP0", "Done!"):
            if done.returncode < 0 or part not in done.stdout:
                sys.exit(f"gpio ended with {done.returncode}, without {part}:\n{done.stdout}")
        print("gpio finds the bank FP0 and comes to its end")


def main():
    """All blocks, then the files."""
    for program in [*PROGRAMS, "gpio"]:
        uhd_example(program)
    done = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in blocks():
            follow(block, done)
        for name, least in FILES.items():
            size = os.path.getsize(name)
            if size < least:
                sys.exit(f"{name} has {size} bytes, not {least} or more")
            print(f"{name}: {size} bytes")
        os.chdir("/")
    missing = set(PROGRAMS) - {"uhd_find_devices"} - set(done)
    if missing:
        sys.exit(f"{GUIDE} has no command of {', '.join(sorted(missing))}")
    find_by_serial()


if __name__ == "__main__":
    main()
