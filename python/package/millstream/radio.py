"""Radios and transmit streams."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _millstream
from ._millstream import TxEvent
from .receive import BLOCK, RxStream
from .sigmf import Recording, record


class TxStream(_millstream.TxStream):
    """A transmit stream, which Radio.transmit() opens.

    A `with` block ends the burst and waits until the device has taken everything.
    """

    def __enter__(self) -> TxStream:
        return self

    def events(self) -> Iterator[TxEvent]:
        """The events that have come and were not fetched yet; does not wait."""
        while (event := self.next_event(0.0)) is not None:
            yield event


class Radio(_millstream.Radio):
    """A radio that this process has claimed, until close() or the end of a `with` block.

    The arguments are those of the command line: "addr=192.168.10.2", or "type=e3xx,serial=..." for a
    search. "radio=emulated" starts an emulated radio inside this process.
    """

    def receive(
        self,
        channels: int | Sequence[int] = 0,
        *,
        samples: int | None = None,
        at_ns: int | None = None,
        format: str = "cf32",
        gaps: str = "event",
        block: int = BLOCK,
        timeout: float | None = 10.0,
        samples_per_packet: int | None = None,
        recv_queue_bytes: int | None = None,
        start: bool = True,
    ) -> RxStream:
        """Opens a receive stream of one channel, or of several that are aligned in time.

        It starts at once, or at the time `at_ns` of the radio's clock, and ends after `samples`
        samples; start=False leaves that to start(). `format` is "cf32" (complex64) or "sc16" (int16,
        I and Q in the last dimension).

        `gaps` says what happens where samples are missing. "event": the next block has them as its
        `gap`. "raise": GapError, after which the stream goes on. "zeros": zeros in their place.
        "drop": nothing; only the ledger counts them.
        """
        several = [channels] if isinstance(channels, int) else list(channels)
        stream = RxStream(
            self,
            several,
            format=format,
            gaps=gaps,
            samples_per_packet=samples_per_packet,
            recv_queue_bytes=recv_queue_bytes,
        )
        stream.block, stream.timeout = block, timeout
        if start:
            try:
                stream.start(samples, at_ns=at_ns)
            except BaseException:
                stream.close()
                raise
        return stream

    def transmit(
        self, channels: int | Sequence[int] = 0, *, format: str = "cf32",
        samples_per_packet: int | None = None,
    ) -> TxStream:
        """Opens a transmit stream of one channel, or of several that are aligned in time."""
        several = [channels] if isinstance(channels, int) else list(channels)
        return TxStream(self, several, format=format, samples_per_packet=samples_per_packet)

    def record(
        self,
        path: str | os.PathLike[str],
        samples: int,
        channel: int = 0,
        *,
        at_ns: int | None = None,
        description: str | None = None,
        timeout: float | None = 10.0,
    ) -> Recording:
        """Records to a SigMF recording of 16-bit samples; each gap begins a new capture.

        Returns the recording, opened. `samples` counts those that the radio takes, so after losses
        the file has fewer.
        """
        with self.receive(
            channel, samples=samples, at_ns=at_ns, format="sc16", timeout=timeout
        ) as stream:
            return record(
                stream,
                path,
                frequency=self.frequency(channel).frequency,
                hardware=self.info.get("product"),
                description=description,
            )

    def spectrum(
        self, samples: int = 65536, channel: int = 0
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Receives once and returns frequencies, Hz, and levels, dB of full scale."""
        with self.receive(channel, samples=samples) as stream:
            block = stream.read(samples)
            rate = stream.rate
        window = np.hanning(len(block))
        bins = np.fft.fftshift(np.fft.fft(block.samples * window)) / window.sum()
        centre = self.frequency(channel).frequency
        frequencies = centre + np.fft.fftshift(np.fft.fftfreq(len(block), 1 / rate))
        return frequencies, 20 * np.log10(np.maximum(np.abs(bins), 1e-10))

    def __enter__(self) -> Radio:
        return self
