"""Shared by the GNU Radio peers: numbered streams, our example programs, the comparison."""

import random
import subprocess

import common
from common import ROOT, skip

PACKET = 188
SYMBOL_RATE_HZ = 4.5e6 / 286 * 684

try:
    from gnuradio import blocks, dtv, gr  # noqa: F401 (the peers use gr)
except ImportError as error:
    skip(f"no GNU Radio with dtv ({error}; Debian package gnuradio)")


def numbered_stream(seed, packets):
    """Null packets of random bytes, each with its number: every packet is unique."""
    randomness = random.Random(seed)
    header = bytes([0x47, 0x1F, 0xFF, 0x10])
    return b"".join(header + n.to_bytes(8, "big") + randomness.randbytes(PACKET - 12)
                    for n in range(packets))


def example(name, *arguments):
    """Runs one of our example programs; its output."""
    command = [*common.example("millstream-atsc", name, "--release"), *map(str, arguments)]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    except FileNotFoundError:
        skip(f"no {common.CARGO}")
    if done.returncode != 0:
        raise SystemExit(f"{name} ended with {done.returncode}")
    return done.stdout


def coder():
    """GNU Radio's coder, block by block: packets in, symbols of three bits out.

    A segment of GNU Radio's is 4 bytes of its place, 832 symbols, and padding.
    """
    return [dtv.atsc_pad(), dtv.atsc_randomizer(), dtv.atsc_rs_encoder(), dtv.atsc_interleaver(),
            dtv.atsc_trellis_encoder(), dtv.atsc_field_sync_mux(),
            blocks.vector_to_stream(1, 1024), blocks.keep_m_in_n(1, 832, 1024, 4)]


def split(stream):
    return [stream[i:i + PACKET] for i in range(0, len(stream) - PACKET + 1, PACKET)]


def compare(sent, got, least, spare, excused=()):
    """Every packet from the first right one on has to be the next one sent, but for the `excused`
    ones of `got`, until `spare` packets before the end of what was sent at the latest; and there
    have to be `least` of them."""
    places = {packet: n for n, packet in enumerate(sent)}
    first = next((i for i, packet in enumerate(got) if packet in places), None)
    if first is None:
        raise SystemExit(f"FAILED: none of {len(got)} packets was sent")
    start = places[got[first]]
    count = min(len(got) - first, len(sent) - start)
    pairs = enumerate(zip(got[first:], sent[start:]), start=first)
    wrong = sum(a != b for i, (a, b) in pairs if i not in excused)
    print(f"{len(got)} packets out; right from packet {first} on, which is number {start} sent: "
          f"{count} packets, {wrong} wrong")
    if wrong or count < least or start + count < len(sent) - spare:
        raise SystemExit(f"FAILED: expected 0 wrong, at least {least} right, "
                         f"and to reach packet {len(sent) - spare} of {len(sent)}")
