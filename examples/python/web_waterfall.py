#!/usr/bin/env python3
"""Draws the waterfall of a running `millstream … --web PORT` as a PNG, from the protocol millstream.v1 alone.

    web_waterfall.py http://127.0.0.1:8080/ waterfall.png [SECONDS]        needs: pip install websockets
"""
import asyncio
import json
import struct
import sys
import urllib.parse
import zlib

import websockets

HEADER, BINS, LINES_PER_S = struct.Struct("<BBBBHHIIQQddfffId"), 1024, 20  # 72 bytes; the values follow
STOPS = [(68, 1, 84), (65, 68, 135), (42, 120, 142), (34, 168, 132), (122, 209, 81), (253, 231, 37)]  # viridis


def colour(share):
    """Mixes a colour of the palette for a share from 0 to 1."""
    place = min(max(share, 0), 0.9999) * (len(STOPS) - 1)
    low, high, part = STOPS[int(place)], STOPS[int(place) + 1], place % 1
    return bytes(round(a + (b - a) * part) for a, b in zip(low, high))


def write_png(name, rows):
    """Writes rows of RGB bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    with open(name, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
                   + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


async def main(address, name, seconds="5"):
    url = urllib.parse.urlsplit(address)
    query = f"?{url.fragment}" if url.fragment else ""  # the page's address has the token behind #
    lines = []
    async with websockets.connect(f"ws://{url.netloc}/ws{query}", max_size=1 << 20) as socket:
        while len(lines) < float(seconds) * LINES_PER_S:
            message = await socket.recv()
            if isinstance(message, str):
                hello = json.loads(message)
                if hello["type"] == "hello" and not lines:
                    stream = next(one["stream"] for one in hello["streams"] if one["kind"] == "spectrum")
                    await socket.send(json.dumps({"type": "subscribe", "stream": stream, "bins": BINS, "lines_per_s": LINES_PER_S}))
            elif message[0] == 1:
                (_, _, _, flags, _, _, _, bins, _, _, centre, span, share, reference, step, dropped, _) = HEADER.unpack_from(message)
                levels = [reference + step * value for value in message[HEADER.size:HEADER.size + bins]]
                if flags & 1:
                    lines.append(None)  # samples are missing before this line
                lines.append(levels)
    floor = sorted(lines[-1])[BINS // 4] - 5
    rows = [b"\xff" * 3 * BINS if line is None else b"".join(colour((level - floor) / 60) for level in line) for line in lines]
    write_png(name, rows)
    print(f"{name}: {len(rows)} lines, {centre / 1e6:.3f} MHz ± {span / 2e6:.3f} MHz; saw {share:.3%} of the samples, {dropped} dropped")

if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
