"""SigMF recordings: samples as views of the file, a segment for each stretch without a gap."""

from __future__ import annotations

import datetime
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._millstream import Gap, __version__

if TYPE_CHECKING:
    from .receive import RxStream

#: The factor from 16-bit samples to full scale 1, that of streams.
SC16_SCALE = 1 / 32767

# SigMF's name: the type in memory, whether I and Q are two numbers, zero, and the factor to full scale.
_FORMATS: dict[str, tuple[str, bool, float, float]] = {
    "cf32_le": ("<c8", False, 0.0, 1.0),
    "cf64_le": ("<c16", False, 0.0, 1.0),
    "ci16_le": ("<i2", True, 0.0, SC16_SCALE),
    "ci16_be": (">i2", True, 0.0, SC16_SCALE),
    "ci8": ("i1", True, 0.0, 1 / 127),
    "cu8": ("u1", True, 127.5, 1 / 127.5),
}


@dataclass(frozen=True)
class Segment:
    """A stretch of a recording without a gap.

    `samples` is a view of the file, which reads what is used: complex numbers, or whole ones with I
    and Q in the last dimension. `first` is the number of its first sample in the file, and
    `global_index` the same by the radio's clock, gaps included. `missing` samples are missing before
    it; None when the recording does not say how many.
    """

    samples: npt.NDArray[Any]
    first: int
    global_index: int | None
    missing: int | None
    annotations: tuple[str, ...]
    _scale: tuple[float, float] = field(repr=False)

    def complex64(self) -> npt.NDArray[np.complex64]:
        """Returns the samples as complex floats, full scale being 1: a copy unless they are that."""
        return _complex64(self.samples, self._scale)

    def __len__(self) -> int:
        return len(self.samples)


class Recording:
    """A SigMF recording: a .sigmf-meta and a .sigmf-data file, or an archive (.sigmf) of both."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        meta, self._data, self._offset, size = _locate(self.path)
        self.metadata: dict[str, Any] = meta
        datatype = _get(meta, "global", dict, self.path).get("core:datatype")
        if datatype not in _FORMATS:
            raise ValueError(
                f"{self.path} has samples of the type {datatype!r}; readable are {', '.join(_FORMATS)}"
            )
        self.datatype: str = datatype
        kind, pairs, zero, scale = _FORMATS[datatype]
        self._dtype, self._pairs, self._scale = np.dtype(kind), pairs, (zero, scale)
        sample_bytes = self._dtype.itemsize * (2 if pairs else 1)
        if size == 0 or size % sample_bytes:
            raise ValueError(
                f"{self._data} has {size} bytes, but each sample takes {sample_bytes}: the recording is "
                "empty or not complete"
            )
        self._samples = size // sample_bytes

    @property
    def rate(self) -> float | None:
        """Samples per second, if the recording says so."""
        rate = self.metadata["global"].get("core:sample_rate")
        return None if rate is None else float(rate)

    @property
    def frequency(self) -> float | None:
        """The frequency in the middle of the band, Hz, if the recording says so."""
        captures = self.metadata.get("captures") or [{}]
        frequency = captures[0].get("core:frequency")
        return None if frequency is None else float(frequency)

    @property
    def samples(self) -> npt.NDArray[Any]:
        """All samples of the file, gaps left out: a view, which reads what is used."""
        shape = (self._samples, 2) if self._pairs else (self._samples,)
        return np.memmap(self._data, self._dtype, "r", self._offset, shape)

    @property
    def segments(self) -> list[Segment]:
        """The stretches without a gap, in order."""
        captures = _get(self.metadata, "captures", list, self.path) or [{"core:sample_start": 0}]
        starts = [_index(capture, "core:sample_start", self.path) for capture in captures]
        if starts != sorted(starts) or starts[-1] > self._samples:
            raise ValueError(
                f"{self.path}: its captures begin at {starts}, which does not fit its {self._samples} "
                "samples: the data is truncated, or belongs to another recording"
            )
        samples = self.samples
        ends = [*starts[1:], self._samples]
        segments: list[Segment] = []
        for start, end, capture in zip(starts, ends, captures):
            index = capture.get("core:global_index")
            missing: int | None = 0
            if segments:
                before = segments[-1]
                if index is None or before.global_index is None:
                    missing = None
                else:
                    missing = max(0, index - before.global_index - (start - before.first))
            notes = tuple(self._annotations(start, end))
            segments.append(Segment(samples[start:end], start, index, missing, notes, self._scale))
        return segments

    def _annotations(self, start: int, end: int) -> Iterator[str]:
        for one in self.metadata.get("annotations", []):
            if start <= one.get("core:sample_start", -1) < end:
                parts = (one.get("core:label"), one.get("core:comment"))
                yield ": ".join(part for part in parts if part)

    def complex64(self, start: int = 0, count: int | None = None) -> npt.NDArray[np.complex64]:
        """Returns samples as complex floats, full scale being 1."""
        end = self._samples if count is None else start + count
        return _complex64(self.samples[start:end], self._scale)

    def __len__(self) -> int:
        return self._samples

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r}, {self._samples} samples of {self.datatype})"


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """Opens a SigMF recording; reads its metadata only."""
    return Recording(path)


def _complex64(samples: npt.NDArray[Any], scale: tuple[float, float]) -> npt.NDArray[np.complex64]:
    if samples.ndim == 1:
        return samples.astype(np.complex64, copy=False)
    zero, factor = scale
    floats = np.ascontiguousarray(samples, np.float32)
    if zero:
        floats = floats - np.float32(zero)
    return (floats * np.float32(factor)).view(np.complex64)[:, 0]


def _get(meta: Any, key: str, kind: type, path: Path) -> Any:
    found = meta.get(key) if isinstance(meta, dict) else None
    if not isinstance(found, kind):
        raise ValueError(f"{path} is not SigMF metadata: it has no {key!r}")
    return found


def _index(capture: Any, key: str, path: Path) -> int:
    index = capture.get(key) if isinstance(capture, dict) else None
    if not isinstance(index, int) or index < 0:
        raise ValueError(f"{path}: a capture has {key}={index!r}: expected a number from 0")
    return index


def _parse(text: bytes, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is not valid SigMF metadata: {error}") from None


def _locate(path: Path) -> tuple[dict[str, Any], Path, int, int]:
    """The metadata, the file with the samples, where they begin in it, and their bytes."""
    if path.suffix == ".sigmf":
        with tarfile.open(path) as archive:
            members = {Path(one.name).suffix: one for one in archive if one.isfile()}
            meta, data = members.get(".sigmf-meta"), members.get(".sigmf-data")
            opened = archive.extractfile(meta) if meta is not None else None
            if opened is None or data is None:
                raise ValueError(f"{path} is no SigMF archive: it needs a .sigmf-meta and a .sigmf-data")
            return _parse(opened.read(), path), path, data.offset_data, data.size
    if path.suffix not in (".sigmf-meta", ".sigmf-data"):
        raise ValueError(f"{path} is no SigMF recording: give a .sigmf-meta, .sigmf-data or .sigmf file")
    data_file, meta_file = path.with_suffix(".sigmf-data"), path.with_suffix(".sigmf-meta")
    return _parse(meta_file.read_bytes(), meta_file), data_file, 0, data_file.stat().st_size


def record(
    stream: RxStream,
    path: str | os.PathLike[str],
    *,
    frequency: float | None = None,
    hardware: str | None = None,
    description: str | None = None,
) -> Recording:
    """Writes a stream of one channel and the format "sc16" to a recording, until it ends.

    The files are called .part until they are complete. A gap begins a new capture, and an annotation
    says why samples are missing.
    """
    if stream.channels != 1 or stream.format != "sc16":
        raise ValueError('a recording needs a stream of one channel with format="sc16"')
    path = Path(path)
    if path.suffix not in (".sigmf-meta", ".sigmf-data"):
        raise ValueError(f"{path}: give a name that ends in .sigmf-meta")
    data, meta = path.with_suffix(".sigmf-data"), path.with_suffix(".sigmf-meta")
    part = data.with_name(data.name + ".part")
    writer = _Writer(stream.rate, frequency)
    with open(part, "wb") as file:
        for block in stream:
            if block.gap is not None:
                writer.gap(block.gap)
            if len(block):
                writer.samples(len(block), block.time_ns)
                file.write(block.samples.data)
    part_meta = meta.with_name(meta.name + ".part")
    part_meta.write_text(json.dumps(writer.meta(hardware, description), indent=2), encoding="utf-8")
    part.rename(data)
    part_meta.rename(meta)
    return Recording(meta)


class _Writer:
    """The captures and annotations of a recording that grows."""

    def __init__(self, rate: float, frequency: float | None):
        self.rate, self.frequency = rate, frequency
        self.began = datetime.datetime.now(datetime.timezone.utc)
        self.count, self.missing = 0, 0
        self.origin: int | None = None
        self.open = False
        self.captures: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []

    def gap(self, gap: Gap) -> None:
        """Notes missing samples."""
        self.open = False
        self.missing += gap.samples
        self.annotations.append({
            "core:sample_start": self.count,
            "core:sample_count": 0,
            "core:label": gap.cause,
            "core:comment": f"{gap.samples} samples missing before this one",
        })

    def samples(self, count: int, time_ns: int | None) -> None:
        """Notes samples."""
        if not self.open:
            if self.origin is None and time_ns is not None:
                self.origin = round(time_ns * self.rate / 1e9) - self.count - self.missing
            capture: dict[str, Any] = {"core:sample_start": self.count}
            if self.origin is not None:
                capture["core:global_index"] = self.origin + self.count + self.missing
            if self.frequency is not None:
                capture["core:frequency"] = self.frequency
            self.captures.append(capture)
            self.open = True
        self.count += count

    def meta(self, hardware: str | None, description: str | None) -> dict[str, Any]:
        """The metadata of the whole."""
        general: dict[str, Any] = {
            "core:version": "1.0.0",
            "core:datatype": "ci16_le",
            "core:recorder": f"millstream {__version__}",
            "core:sample_rate": self.rate,
        }
        if hardware:
            general["core:hw"] = hardware
        if description:
            general["core:description"] = description
        captures = self.captures or [{"core:sample_start": 0}]
        captures[0]["core:datetime"] = self.began.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"global": general, "captures": captures, "annotations": self.annotations}
