"""gqrx over an emulated radio, for the peers that give it one: the line of a station, and the line elsewhere after a retune.

gqrx runs on a screen without a display. It is tuned over its remote control; the peer looks at the pixels of its
spectrum.
"""

import os
import socket
import tempfile
import time

import numpy as np

from common import free_port
from soapy_screen import Desktop

RATE_HZ = 1e6


def config(device, gain, port):
    # A map of one gain, as Qt writes it: 40.0 dB. An A behind the digits would be one, too.
    name = "".join(f"\\0{letter}" for letter in gain).replace("A", "\\x41")
    return f"""[General]
configversion=3
crashed=false

[input]
device="{device}"
frequency=433900000
sample_rate={int(RATE_HZ)}
gains=@Variant(\\0\\0\\0\\b\\0\\0\\0\\x1\\0\\0\\0\\x6{name}\\0\\0\\0\\x2\\0\\0\\x1\\x90)

[remote_control]
enabled=true
port={port}
"""


def ask(port, request):
    with socket.create_connection(("127.0.0.1", port), 5) as remote:
        remote.settimeout(5)
        remote.sendall(request.encode() + b"\n")
        return remote.recv(200).decode().strip()


def stations_show(programs, device, gain, keep, name):
    """Runs gqrx with a device and its gain; leaves pictures of that name in the folder `keep`, if there is one."""
    gqrx_path, xvfb, pulseaudio = programs
    with tempfile.TemporaryDirectory() as folder, Desktop(folder, xvfb, pulseaudio) as desktop:
        port = free_port()
        os.mkdir(os.path.join(folder, "gqrx"))
        with open(os.path.join(folder, "gqrx/default.conf"), "w", encoding="utf-8") as file:
            file.write(config(device, gain, port))
        gqrx = desktop.start(gqrx_path, "-c", "default.conf")
        desktop.wait_for("its remote control", lambda: ask(port, "f"))
        time.sleep(2)
        look(desktop.screen, port, keep and os.path.join(keep, name))
        assert gqrx.poll() is None


def look(screen, port, keep):
    # Its button that starts: the window has no manager, so keys have no focus.
    screen.click(29, 62)
    columns = []
    for number, (tuned_hz, hears) in enumerate([(433.92e6, True), (433.7e6, False), (1e9, True), (1.0001e9, False)]):
        assert ask(port, f"F {tuned_hz:.0f}") == "RPRT 0"
        time.sleep(3)
        level_db = float(ask(port, "l STRENGTH"))
        if keep:
            screen.save(f"{keep}-{number}.png")
        columns.append(bright_column(screen.pixels()))
        print(f"{tuned_hz / 1e6:9.2f} MHz: {level_db} dBFS, the station's line in column {columns[-1]}")
        assert (level_db > -60) == hears, "the strength is not that of the station" if hears else "there is no station"
    # It moves the radio only when the filter's place is not within its band.
    assert columns[0] != columns[2], "the line did not move"


def bright_column(pixels):
    """The column of the waterfall's newest lines that is strongest: a station."""
    rows = pixels[330:340].astype(int)
    # The panel beside the waterfall is light; how wide both are differs between versions.
    light = "".join("L" if column else "d" for column in rows.min(axis=(0, 2)) > 200)
    # Its colours go from black over blue, light blue, yellow and red to white.
    strengths = 2 * rows[..., 0] - rows[..., 1] + 2 * rows.min(axis=2)
    newest = strengths[:, :light.find("L" * 8)].mean(axis=0)
    column = int(np.argmax(newest))
    assert newest[column] > np.median(newest) + 100, "the waterfall shows no line"
    return column
