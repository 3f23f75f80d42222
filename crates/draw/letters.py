#!/usr/bin/env python3
"""Makes crates/draw/src/letters.bin, the letters of the pictures, from the font DejaVu Sans.

    crates/draw/letters.py      needs Debian's python3-pil and fonts-dejavu-core

For each face (text of 11 pixels, title of 14 pixels in bold), for each of its letters: the character (32 bits, little-endian),
the distance to the next letter, the place of the bitmap's upper left corner (to the right of the pen and below the base line),
its width and height (a byte each, in pixels), and its coverage, a byte a pixel, row by row. A character 0 ends a face.
"""
import pathlib
import struct

from PIL import Image, ImageDraw, ImageFont

FOLDER = "/usr/share/fonts/truetype/dejavu/"
FACES = [("DejaVuSans.ttf", 11), ("DejaVuSans-Bold.ttf", 14)]
LETTERS = [*map(chr, range(0x20, 0x7F)), *map(chr, range(0xA0, 0x100)), *"ΔΣΩαβδεθλμπσφω–—…≤≥≈∞√→←−"]


def record(letter, font):
    left, top, right, bottom = font.getbbox(letter, anchor="ls")
    width, height = right - left, bottom - top
    bitmap = Image.new("L", (max(width, 1), max(height, 1)), 0)
    ImageDraw.Draw(bitmap).text((-left, -top), letter, fill=255, font=font, anchor="ls")
    if not bitmap.getbbox():
        left = top = width = height = 0
    coverage = bitmap.tobytes() if width else b""
    return struct.pack("<IBbbBB", ord(letter), round(font.getlength(letter)), left, top, width, height) + coverage


out = b""
for name, size in FACES:
    font = ImageFont.truetype(FOLDER + name, size)
    out += b"".join(record(letter, font) for letter in sorted(set(LETTERS))) + struct.pack("<I", 0)
pathlib.Path(__file__).with_name("src").joinpath("letters.bin").write_bytes(out)
print(len(out), "bytes")
