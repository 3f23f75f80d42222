#!/usr/bin/python3
"""rtl_433 decodes a remote control that an emulated radio receives, through `millstream serve rtl-tcp`.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import shutil

from common import skip
from rtl_tcp_server import RtlServer

RTL_433 = shutil.which("rtl_433") or skip("no rtl_433 (Debian package rtl-433)")
try:
    from remote_control import decodes, recording
except ImportError as missing:
    skip(f"{missing} (Debian package python3-numpy)")

file, sent = recording()
with file:
    with RtlServer(f"radio=emulated,antenna=file:{file.name}") as server:
        decodes(RTL_433, f"rtl_tcp:{server.address}", sent)
    # It sets frequency, rate and gain.
    print(server.results)
    assert server.results["clients"] == 1 and server.results["commands"] >= 3, server.results
