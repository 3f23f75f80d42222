#!/usr/bin/python3
"""ffprobe and ffmpeg judge what `millstream demo` leaves: the video stream is there and the picture is the test picture.

The expected picture is decoded by ffmpeg from the transport stream that was sent, so both sides of the comparison are
pictures that ffmpeg made: one from before the radio path, one from behind it.
Exit status: 0 it is, 1 it is not, 77 skipped because ffmpeg is not there.
"""
import json
import os
import shutil
import subprocess
import tempfile

from common import MILLSTREAM, ROOT, skip

SENT = os.path.join(ROOT, "crates/cli/assets/test-picture.ts")
# Bars of the test picture: a point in each, away from text and edges (1280x720), and its colour in RGB.
BARS = {"grey": (80, 60), "white": (228, 60), "yellow": (367, 60), "cyan": (505, 60), "green": (640, 60),
        "magenta": (776, 60), "red": (915, 60), "blue": (1055, 60)}
TOLERANCE = 12


def pixels(source, second):
    """One picture as raw RGB."""
    raw = subprocess.run(["ffmpeg", "-loglevel", "error", "-nostdin", "-i", source, "-ss", str(second), "-frames:v", "1",
                          "-s", "1280x720", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], check=True, capture_output=True).stdout
    assert len(raw) == 1280 * 720 * 3, f"{source}: no picture ({len(raw)} bytes)"
    return raw


def at(raw, point):
    x, y = point
    return tuple(raw[(y * 1280 + x) * 3:][:3])


def main():
    if not (shutil.which("ffprobe") and shutil.which("ffmpeg")):
        skip("no ffprobe and ffmpeg (Debian package ffmpeg)")
    if not os.access(MILLSTREAM, os.X_OK):
        skip(f"no {MILLSTREAM} (run make build)")
    with tempfile.TemporaryDirectory() as folder:
        out, png = os.path.join(folder, "demo.ts"), os.path.join(folder, "demo.png")
        # Half speed: CI machines are shared, and this asks for correctness, not for speed.
        command = [MILLSTREAM, "--json", "demo", "--duration", "4s", "--time-scale", "0.5", "--out", out, "--picture", png]
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=120)
        results = json.loads(done.stdout).get("results") or {}
        assert done.returncode == 0, f"demo ended {done.returncode}: {results.get('failure')}"

        probe = subprocess.run(["ffprobe", "-loglevel", "error", "-show_streams", "-show_format", "-of", "json", out],
                               check=True, capture_output=True)
        streams = {s["codec_type"]: s for s in json.loads(probe.stdout)["streams"]}
        video = streams["video"]
        assert (video["codec_name"], video["width"], video["height"]) == ("mpeg2video", 1280, 720), video
        assert streams["audio"]["codec_name"] == "ac3", streams["audio"]

        sent, got, shown = pixels(SENT, 2), pixels(out, 1), pixels(png, 0)
        for name, point in BARS.items():
            want = at(sent, point)
            for where, picture in (("demo.ts", got), ("demo.png", shown)):
                have = at(picture, point)
                assert max(abs(a - b) for a, b in zip(want, have)) <= TOLERANCE, f"{where}: {name} is {have}, sent {want}"
        print(f"ffprobe: {video['codec_name']} {video['width']}x{video['height']}, {streams['audio']['codec_name']}; "
              f"{results['signal_s']:.2f} s of signal; {len(BARS)} colour bars agree; ledger {results['ledger']}")


if __name__ == "__main__":
    main()
