"""Values of UHD's Python interface: times, commands, metadata, frequencies."""

from __future__ import annotations

import enum
import functools
import math


@functools.total_ordering
class TimeSpec:
    """A time: whole seconds and the rest, so that it stays exact after years."""

    def __init__(self, secs: float = 0.0, frac: float = 0.0):
        whole = math.floor(secs)
        rest = (secs - whole) + frac
        carry = math.floor(rest)
        self._full = int(whole) + carry
        self._frac = rest - carry

    @classmethod
    def from_ticks(cls, ticks: int, rate: float) -> TimeSpec:
        """The time of a tick."""
        full = int(ticks // rate)
        return cls(full, (ticks - full * rate) / rate)

    @classmethod
    def from_ns(cls, ns: int) -> TimeSpec:
        """The time of a number of nanoseconds."""
        return cls(ns // 1_000_000_000, ns % 1_000_000_000 / 1e9)

    def to_ns(self) -> int:
        """The nearest number of nanoseconds."""
        return self._full * 1_000_000_000 + round(self._frac * 1e9)

    def to_ticks(self, rate: float) -> int:
        """The nearest number of ticks."""
        return round(self._full * rate) + round(self._frac * rate)

    def get_tick_count(self, rate: float) -> int:
        """The ticks of the fraction of a second."""
        return round(self._frac * rate)

    def get_real_secs(self) -> float:
        """The time as one number."""
        return self._full + self._frac

    def get_full_secs(self) -> int:
        """The whole seconds."""
        return self._full

    def get_frac_secs(self) -> float:
        """The fraction of a second."""
        return self._frac

    def __add__(self, other: TimeSpec | float) -> TimeSpec:
        if isinstance(other, TimeSpec):
            return TimeSpec(self._full + other._full, self._frac + other._frac)
        return self + TimeSpec(other)

    def __sub__(self, other: TimeSpec | float) -> TimeSpec:
        if isinstance(other, TimeSpec):
            return TimeSpec(self._full - other._full, self._frac - other._frac)
        return self - TimeSpec(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimeSpec) and (self._full, self._frac) == (other._full, other._frac)

    def __lt__(self, other: TimeSpec) -> bool:
        return (self._full, self._frac) < (other._full, other._frac)

    def __hash__(self) -> int:
        return hash((self._full, self._frac))

    def __repr__(self) -> str:
        return f"TimeSpec({self.get_real_secs()})"


class StreamMode(enum.Enum):
    """What a stream command asks for."""

    start_cont = "a"
    stop_cont = "o"
    num_done = "d"
    num_more = "m"


class StreamCMD:
    """A command to start or stop a stream."""

    def __init__(self, mode: StreamMode):
        self.stream_mode = mode
        self.num_samps = 0
        self.stream_now = True
        self.time_spec = TimeSpec()


class RXMetadataErrorCode(enum.Enum):
    """Why recv returned no samples."""

    none = 0x0
    timeout = 0x1
    late = 0x2
    broken_chain = 0x4
    overflow = 0x8
    alignment = 0xC
    bad_packet = 0xF


class RXMetadata:
    """What recv says about samples, or in place of them."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self.has_time_spec = False
        self.time_spec = TimeSpec()
        self.more_fragments = False
        self.fragment_offset = 0
        self.start_of_burst = False
        self.end_of_burst = False
        self.error_code = RXMetadataErrorCode.none
        self.out_of_sequence = False
        #: Beyond UHD: how many samples are missing, exactly.
        self.missing_samples = 0

    def strerror(self) -> str:
        """The error in words."""
        missing = f" ({self.missing_samples} samples are missing)" if self.missing_samples else ""
        return {
            RXMetadataErrorCode.none: "no error",
            RXMetadataErrorCode.timeout: "no samples came before the timeout",
            RXMetadataErrorCode.late: "the stream command came after its time",
            RXMetadataErrorCode.overflow:
                ("lost packets" if self.out_of_sequence else "an overflow in the radio") + missing,
        }.get(self.error_code, self.error_code.name)


class TXMetadata:
    """What the caller says about samples to send."""

    def __init__(self) -> None:
        self.has_time_spec = False
        self.time_spec = TimeSpec()
        self.start_of_burst = False
        self.end_of_burst = False


class TXMetadataEventCode(enum.Enum):
    """What the radio reports about transmitted samples."""

    burst_ack = 0x1
    underflow = 0x2
    seq_error = 0x4
    time_error = 0x8
    underflow_in_packet = 0x10
    seq_error_in_packet = 0x20
    user_payload = 0x40


class TXAsyncMetadata:
    """A report of the radio about transmitted samples."""

    def __init__(self) -> None:
        self.channel = 0
        self.has_time_spec = False
        self.time_spec = TimeSpec()
        self.event_code = TXMetadataEventCode.burst_ack


class TuneRequest:
    """A wanted frequency, and how far above it the oscillator should lie."""

    def __init__(self, target_freq: float = 0.0, lo_off: float = 0.0):
        self.target_freq = target_freq
        self.lo_off = lo_off
        self.args = ""


class TuneResult:
    """The frequencies that a radio took."""

    def __init__(self, target: float, actual: float, rf: float, dsp: float):
        self.clipped_rf_freq = target
        self.target_rf_freq = rf
        self.actual_rf_freq = rf
        self.target_dsp_freq = dsp
        self.actual_dsp_freq = dsp
        self.actual_freq = actual


class MetaRange:
    """A range of a setting."""

    def __init__(self, start: float, stop: float, step: float = 0.0):
        self._start, self._stop, self._step = start, stop, step

    def start(self) -> float:
        """The lowest value."""
        return self._start

    def stop(self) -> float:
        """The highest value."""
        return self._stop

    def step(self) -> float:
        """The distance of values; 0 where any lies in the range."""
        return self._step

    def clip(self, value: float) -> float:
        """The nearest value in the range."""
        return min(max(value, self._start), self._stop)

    def __repr__(self) -> str:
        return f"MetaRange({self._start}, {self._stop})"


class SensorValue:
    """A reading of a sensor."""

    def __init__(self, name: str, value: str, unit: str):
        self.name, self.value, self.unit = name, value, unit

    def to_bool(self) -> bool:
        """The reading as a truth value."""
        return self.value.lower() == "true"

    def to_real(self) -> float:
        """The reading as a number."""
        return float(self.value)

    def to_int(self) -> int:
        """The reading as a whole number."""
        return int(self.value)

    def to_pp_string(self) -> str:
        """The reading in words."""
        return f"{self.name}: {self.value} {self.unit}".rstrip()

    def __str__(self) -> str:
        return self.to_pp_string()
