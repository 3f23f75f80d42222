#!/usr/bin/python3
"""gqrx shows an emulated radio through our module: the line of a station, and the line elsewhere after a retune.

`soapy_gqrx.py FOLDER` leaves pictures in a folder.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import sys

from common import skip
from soapy_common import use_module

PROGRAMS = use_module("gqrx", "Xvfb", "pulseaudio")
try:
    from gqrx_screen import stations_show
except ImportError as missing:
    skip(f"{missing} (Debian package python3-numpy)")

keep = sys.argv[1] if len(sys.argv) > 1 else None
stations_show(PROGRAMS, "soapy=0,driver=millstream,radio=emulated", "PGA", keep, "gqrx")
