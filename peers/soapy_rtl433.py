#!/usr/bin/python3
"""rtl_433 decodes a remote control that an emulated radio receives, through our module.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

from common import skip
from soapy_common import text_of, use_module

[RTL_433] = use_module("rtl_433")
try:
    from remote_control import decodes, recording
except ImportError as missing:
    skip(f"{missing} (Debian package python3-numpy)")

file, sent = recording()
with file:
    decodes(RTL_433, text_of({"driver": "millstream", "radio": "emulated", "antenna": f"file:{file.name}"}), sent)
