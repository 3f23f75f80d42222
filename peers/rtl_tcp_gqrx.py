#!/usr/bin/python3
"""gqrx shows an emulated radio through `millstream serve rtl-tcp`: the line of a station, and elsewhere after a retune.

`rtl_tcp_gqrx.py FOLDER` leaves pictures in a folder.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import shutil
import sys

from common import skip
from rtl_tcp_server import RtlServer

PROGRAMS = [shutil.which(program) or skip(f"no {program}") for program in ["gqrx", "Xvfb", "pulseaudio"]]
try:
    from gqrx_screen import stations_show
except ImportError as missing:
    skip(f"{missing} (Debian package python3-numpy)")

keep = sys.argv[1] if len(sys.argv) > 1 else None
with RtlServer("radio=emulated", "--rate", "1M") as server:
    stations_show(PROGRAMS, f"rtl_tcp={server.address}", "LNA", keep, "gqrx-rtl-tcp")
print(server.results)
assert server.results["clients"] >= 1 and server.results["missed"] == 0, server.results
