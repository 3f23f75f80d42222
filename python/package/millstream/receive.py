"""Receive streams: arrays of samples, and iterators over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _millstream
from ._millstream import Gap

#: Samples of a block of an iteration, unless the caller says otherwise.
BLOCK = 65536


@dataclass(frozen=True, slots=True)
class Block:
    """Samples that follow each other without a gap.

    `samples` has the shape (n,) for a stream of one channel, else (channels, n); of the format "sc16"
    with a last dimension of I and Q. len() counts the samples of a channel. `gap` describes the
    samples that are missing directly before this block; None without a gap. In rare cases a gap
    comes without samples: two gaps with nothing between them. `end` says that no sample follows.
    """

    samples: npt.NDArray[Any]
    time_ns: int | None
    gap: Gap | None
    end: bool

    @property
    def time(self) -> float | None:
        """The radio's time of the first sample, seconds. `time_ns` is exact to the nanosecond."""
        return None if self.time_ns is None else self.time_ns / 1e9

    def __len__(self) -> int:
        return int(self.samples.shape[-2 if self.samples.dtype == np.int16 else -1])


class RxStream(_millstream.RxStream):
    """A receive stream, which Radio.receive() opens.

    It can be closed, stopped and started from any thread, also while another one reads. Iterating
    gives blocks until the stream ends; a continuous stream ends after stop().
    """

    #: Samples of a block of an iteration.
    block: int = BLOCK
    #: The longest wait of an iteration for samples, seconds; None for no limit.
    timeout: float | None = 10.0

    def empty(self, samples: int) -> npt.NDArray[Any]:
        """Returns a new array for so many samples of every channel."""
        shape: tuple[int, ...] = (samples,) if self.channels == 1 else (self.channels, samples)
        if self.format == "sc16":
            return np.empty((*shape, 2), np.int16)
        return np.empty(shape, np.complex64)

    def read(self, samples: int, timeout: float | None = 10.0) -> Block:
        """Reads up to `samples` samples into a new array.

        Fewer come before a gap and at the end of the stream. TimeoutError when none came in time;
        the samples that came before the timeout are returned.
        """
        if samples < 1:
            raise ValueError(f"samples is {samples}: give 1 or more")
        out = self.empty(samples)
        got = self.recv_into(out, timeout)
        if got.samples < samples:
            if self.channels > 1:
                out = out[:, : got.samples]
            else:
                out = out[: got.samples]
        return Block(out, got.time_ns, got.gap, got.end)

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        block = self.read(self.block, self.timeout)
        if block.end and len(block) == 0 and block.gap is None:
            raise StopIteration
        return block

    def __enter__(self) -> RxStream:
        return self

    def __aiter__(self) -> AsyncIterator[Block]:
        return self

    async def __anext__(self) -> Block:
        block = await asyncio.to_thread(self.read, self.block, self.timeout)
        if block.end and len(block) == 0 and block.gap is None:
            raise StopAsyncIteration
        return block

    async def read_async(self, samples: int, timeout: float | None = 10.0) -> Block:
        """Reads like read(), and lets other tasks run meanwhile."""
        return await asyncio.to_thread(self.read, samples, timeout)
