"""Samples from networked radios as numpy arrays, with every lost sample counted.

    import millstream

    with millstream.Radio("radio=emulated") as radio:       # "addr=192.168.10.2" is a real one
        radio.set_rate(1e6)
        radio.set_frequency(1e9 - 100e3)
        with radio.receive() as stream:
            block = stream.read(100_000)
    print(block.samples[:4], block.time, stream.ledger)
"""

from __future__ import annotations

from ._millstream import (
    ClosedError,
    EmulatedRadio,
    Error,
    Gap,
    GapError,
    GraphError,
    Ledger,
    RadioError,
    Received,
    StreamError,
    Tuned,
    TxEvent,
    TxLedger,
    __version__,
    find,
)
from .graph import GraphReport, run_graph
from .radio import Radio, TxStream
from .receive import Block, RxStream
from .sigmf import Recording, Segment, open_recording

__all__ = [
    "Block",
    "ClosedError",
    "EmulatedRadio",
    "Error",
    "Gap",
    "GapError",
    "GraphError",
    "GraphReport",
    "Ledger",
    "Radio",
    "RadioError",
    "Received",
    "Recording",
    "RxStream",
    "Segment",
    "StreamError",
    "Tuned",
    "TxEvent",
    "TxLedger",
    "TxStream",
    "__version__",
    "find",
    "open_recording",
    "run_graph",
]
