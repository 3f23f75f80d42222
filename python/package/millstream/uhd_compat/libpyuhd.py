"""Names of UHD's compiled module that tutorials use directly."""

from types import SimpleNamespace

from .types import (
    RXMetadata,
    StreamCMD,
    StreamMode,
    TimeSpec,
    TuneRequest,
    TXAsyncMetadata,
    TXMetadata,
)
from .usrp import StreamArgs

types = SimpleNamespace(
    tune_request=TuneRequest,
    time_spec=TimeSpec,
    stream_cmd=StreamCMD,
    stream_mode=StreamMode,
    rx_metadata=RXMetadata,
    tx_metadata=TXMetadata,
    async_metadata=TXAsyncMetadata,
)
usrp = SimpleNamespace(stream_args=StreamArgs)
