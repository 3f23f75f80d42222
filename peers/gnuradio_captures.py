#!/usr/bin/python3
"""Recordings that GNU Radio's transmitter made: `millstream run graphs/atsc-rx.toml` has to give the stream that was sent.

Each `*.sc16` beside its `*.sent.ts` in the folder of captures (MILLSTREAM_CAPTURES, or ../shared/data) is decoded; every
packet put out has to be the one that was sent, in order, none missing and none flagged.
Exit status: 0 exact, 1 not, 77 skipped because there are no captures.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile

from common import LIMIT_S, MILLSTREAM, ROOT, skip

FOLDER = os.environ.get("MILLSTREAM_CAPTURES", os.path.join(ROOT, "../shared/data"))
RATE = "6.25e6"
PACKET = 188
# GNU Radio's own receiver loses about 360 packets before it is locked; twice that is too much.
LOST_MAX = 720


def decode(recording, folder):
    """The decoded transport stream and the receiver's figures."""
    out = os.path.join(folder, "out.ts")
    done = subprocess.run(
        [MILLSTREAM, "--json", "run", "--force", os.path.join(ROOT, "graphs/atsc-rx.toml"),
         "--set", f"in={recording}", "--set", f"rate={RATE}", "--set", f"out={out}"],
        stdout=subprocess.PIPE, timeout=LIMIT_S, check=True)
    with open(out, "rb") as file:
        return file.read(), json.loads(done.stdout)["results"]["signals"][0]


def check(recording, folder):
    """Whether one recording decodes exactly."""
    with open(recording[:-len("sc16")] + "sent.ts", "rb") as file:
        sent = file.read()
    got, signal = decode(recording, folder)
    packets = len(got) // PACKET
    first = sent.find(got[:PACKET])
    exact = packets > 0 and first % PACKET == 0 and sent[first:first + len(got)] == got
    seconds = os.path.getsize(recording) / 4 / float(RATE)
    missing = round(seconds * 19_392_658 / 8 / PACKET) - packets
    print(f"{os.path.basename(recording)}: {packets} packets, {'bit-exact' if exact else 'WRONG'}, {missing} before lock "
          f"and in the decoders' delay; MER {signal['mer_db']:.1f} dB, pilot {signal['pilot_offset_hz']:+.0f} Hz, "
          f"clock {signal['clock_offset_ppm']:+.2f} ppm")
    return exact and missing < LOST_MAX


def main():
    """All recordings."""
    if not os.access(MILLSTREAM, os.X_OK):
        skip(f"no {MILLSTREAM} (run make build)")
    recordings = [path for path in sorted(glob.glob(os.path.join(FOLDER, "*.sc16")))
                  if os.path.exists(path[:-len("sc16")] + "sent.ts")]
    if not recordings:
        skip(f"no captures in {FOLDER} (set MILLSTREAM_CAPTURES)")
    with tempfile.TemporaryDirectory() as folder:
        results = [check(recording, folder) for recording in recordings]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
