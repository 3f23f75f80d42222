"""The part of UHD's Python interface that tutorials use, over Millstream.

A script runs with one changed line: `import millstream.uhd_compat as uhd` in place of `import uhd`.

    usrp = uhd.usrp.MultiUSRP("addr=192.168.10.2")
    samples = usrp.recv_num_samps(10000, 100e6, 1e6, [0], 50)

Without an address, MultiUSRP opens the radio of the environment variable MILLSTREAM_RADIO (such as
"radio=emulated"), else the first one that it finds. docs/guides/python.md lists what there is.
"""

from . import libpyuhd, types, usrp

__all__ = ["libpyuhd", "types", "usrp"]
