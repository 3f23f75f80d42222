#!/usr/bin/python3
"""CubicSDR lists an emulated radio by our module, opens it, and shows a station where it should be.

CubicSDR makes and unmakes every radio that it lists, reads with time-outs of minutes, and passes all arguments of a
stream on as its form has them. It runs on a screen without a display; the peer clicks, and looks at the waterfall.
`soapy_cubicsdr.py FOLDER` leaves a picture in a folder.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import os
import sys
import tempfile
import time

from common import Radio, skip
from soapy_common import use_module

CUBIC, XVFB, PULSEAUDIO = use_module("CubicSDR", "Xvfb", "pulseaudio")
try:
    import numpy as np
    from soapy_screen import Desktop
except ImportError as missing:
    skip(f"{missing} (Debian package python3-numpy)")

# It begins at 100 MHz, which is in this column; a megahertz has so many columns.
MIDDLE_HZ, MIDDLE, PER_MHZ = 100e6, 733, 440
STATION_HZ = 100.3e6
SCENE = f"""[[station]]
kind = "tone"
frequency = {STATION_HZ}
level = -50
"""
# The first entry of its list of radios, and the button below that opens it. Modules are listed by name, and addresses in order.
ENTRY, START = (480, 230), (578, 579)


def main():
    with tempfile.TemporaryDirectory() as folder:
        scene = os.path.join(folder, "scene.toml")
        with open(scene, "w", encoding="utf-8") as file:
            file.write(SCENE)
        with (Radio("--device", "e320", "--scene", scene, "--rx-buffer-samples", str(1 << 22)),
              Desktop(folder, XVFB, PULSEAUDIO) as desktop):
            cubic = desktop.start(CUBIC, SOAPY_SDR_LOG_LEVEL="ERROR", LIBGL_ALWAYS_SOFTWARE="1")
            desktop.wait_for("its list of radios", lambda: is_list(desktop.screen.pixels()), 60)
            want = MIDDLE + PER_MHZ * (STATION_HZ - MIDDLE_HZ) / 1e6
            try:
                desktop.wait_for("the station's line", lambda: opened(desktop.screen) and
                                 abs(brightest(desktop.screen.pixels()) - want) <= 4, 90)
            finally:
                if len(sys.argv) > 1:
                    desktop.screen.save(os.path.join(sys.argv[1], "cubicsdr.png"))
            assert cubic.poll() is None
            print(f"CubicSDR: {STATION_HZ / 1e6} MHz in column {brightest(desktop.screen.pixels())}, not far from {want:.0f}")


def is_list(pixels):
    """Whether the white list is there with an entry in it."""
    entry = pixels[225:238, 360:600].astype(int).sum(axis=2)
    return pixels[400:500, 310:620].min() > 250 and entry.min() < 200


def opened(screen):
    """Whether the list is gone. Otherwise clicks: while it makes a radio to ask for its settings, it drops clicks."""
    if not is_list(screen.pixels()):
        return True
    for place in (ENTRY, START):
        screen.click(*place)
        time.sleep(1)
    return False


def brightest(pixels):
    """The column of the waterfall's newest lines that is brightest; the noise there has few colours."""
    newest = pixels[392:410, 260:1260].astype(int).sum(axis=(0, 2))
    return 260 + int(np.argmax(newest))


main()
