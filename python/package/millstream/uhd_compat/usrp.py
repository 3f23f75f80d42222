"""UHD's MultiUSRP and its streamers, over a radio of Millstream."""

from __future__ import annotations

import os
import sys
import time as clock
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import find
from .. import Radio as _Radio
from .._millstream import StreamError
from .types import (
    MetaRange,
    RXMetadata,
    RXMetadataErrorCode,
    SensorValue,
    StreamCMD,
    StreamMode,
    TimeSpec,
    TuneRequest,
    TuneResult,
    TXAsyncMetadata,
    TXMetadata,
    TXMetadataEventCode,
)

#: The environment variable with the arguments of MultiUSRP() without an address.
VARIABLE = "MILLSTREAM_RADIO"

ALL_CHANS = 2**64 - 1

# Arguments about buffers of UHD's own transports, which have no meaning here.
_PASSED_OVER = {
    "num_recv_frames", "num_send_frames", "recv_frame_size", "send_frame_size", "send_buff_size",
    "mgmt_addr", "second_addr", "mpm_reboot", "ignore_cal_file", "num_poll_offload_threads",
}
_EVENTS = {
    "burst_end": TXMetadataEventCode.burst_ack,
    "underflow": TXMetadataEventCode.underflow,
    "late": TXMetadataEventCode.time_error,
    "sequence": TXMetadataEventCode.seq_error,
    "lost": TXMetadataEventCode.seq_error,
}


class StreamArgs:
    """How a stream is opened: formats and channels."""

    def __init__(self, cpu_format: str = "fc32", otw_format: str = "sc16"):
        self.cpu_format = cpu_format
        self.otw_format = otw_format
        self.channels: Sequence[int] = [0]
        self.args: Any = ""

    def element(self) -> type[np.complexfloating[Any, Any]]:
        """The type of the elements of arrays."""
        if self.otw_format not in ("sc16", ""):
            raise RuntimeError(
                f"the wire format {self.otw_format!r} is not supported: use \"sc16\", which these radios "
                "send"
            )
        kinds: dict[str, type[np.complexfloating[Any, Any]]] = {
            "fc32": np.complex64, "fc64": np.complex128,
        }
        if self.cpu_format not in kinds:
            raise RuntimeError(
                f"the CPU format {self.cpu_format!r} is not supported: use \"fc32\" or \"fc64\""
            )
        return kinds[self.cpu_format]


class RXStreamer:
    """A receive stream, which MultiUSRP.get_rx_stream() opens."""

    def __init__(self, radio: _Radio, args: StreamArgs):
        self._element = args.element()
        self._channels = list(args.channels) or [0]
        # The stream begins with its first command.
        self._stream = radio.receive(self._channels, start=False)
        self._gap: Any = None

    def get_num_channels(self) -> int:
        """The number of channels."""
        return len(self._channels)

    def get_max_num_samps(self) -> int:
        """A good number of samples for recv."""
        return self._stream.samples_per_read

    def issue_stream_cmd(self, command: StreamCMD) -> None:
        """Starts or stops the stream."""
        if command.stream_mode == StreamMode.stop_cont:
            self._stream.stop()
            return
        if command.stream_mode == StreamMode.num_more:
            raise NotImplementedError(
                "StreamMode.num_more is not supported: use num_done for each reception"
            )
        samples = None if command.stream_mode == StreamMode.start_cont else command.num_samps
        at_ns = None if command.stream_now else command.time_spec.to_ns()
        self._gap = None
        self._stream.start(samples, at_ns=at_ns)

    def recv(
        self, samples: npt.NDArray[Any], metadata: RXMetadata, timeout: float = 0.1,
        one_packet: bool = False,
    ) -> int:
        """Receives into an array with a row for each channel; returns how many samples came.

        0 with an error code in the metadata when none came, or where samples are missing.
        """
        metadata.reset()
        if samples.dtype != self._element:
            raise TypeError(
                f"the array has elements of {samples.dtype}, but the stream was opened for "
                f"{np.dtype(self._element)}: give one of that type, or another cpu_format"
            )
        if self._gap is None:
            try:
                count = self._receive(samples, metadata, timeout, one_packet)
            except TimeoutError:
                metadata.error_code = RXMetadataErrorCode.timeout
                return 0
            except StreamError as error:
                if "does not run" in str(error):
                    metadata.error_code = RXMetadataErrorCode.timeout
                elif "could not start" in str(error):
                    metadata.error_code = RXMetadataErrorCode.late
                else:
                    raise
                return 0
            return count
        waiting, self._gap = self._gap, None
        got, kept = waiting
        self._describe(got, metadata)
        row = samples if samples.ndim == 1 else samples[..., : kept.shape[-1]]
        if samples.shape[-1] < kept.shape[-1]:
            raise ValueError(
                f"the array has room for {samples.shape[-1]} samples, fewer than the last one: after a "
                "gap use an array of the same size"
            )
        row[..., : kept.shape[-1]] = kept
        return int(kept.shape[-1])

    def _receive(
        self, samples: npt.NDArray[Any], metadata: RXMetadata, timeout: float, one_packet: bool
    ) -> int:
        want = samples.shape[-1]
        if one_packet:
            want = min(want, self._stream.samples_per_read)
        part = samples[..., :want]
        target = part
        direct = part.dtype == np.complex64 and part.shape[:-1] in ((), (len(self._channels),))
        if not direct:
            target = self._stream.empty(want)
        got = self._stream.recv_into(target, timeout)
        if got.end and got.samples == 0 and got.gap is None:
            metadata.error_code = RXMetadataErrorCode.timeout
            return 0
        if got.gap is not None:
            # UHD reports a gap by itself, so the samples behind it come with the next call.
            self._gap = (got, target[..., : got.samples].copy()) if got.samples else None
            metadata.error_code = RXMetadataErrorCode.overflow
            metadata.out_of_sequence = got.gap.cause == "sequence"
            metadata.has_time_spec = True
            metadata.time_spec = TimeSpec.from_ns(got.gap.resume_ns)
            metadata.missing_samples = got.gap.samples
            return 0
        if not direct:
            part[..., : got.samples] = target[..., : got.samples]
        self._describe(got, metadata)
        return got.samples

    @staticmethod
    def _describe(got: Any, metadata: RXMetadata) -> None:
        metadata.end_of_burst = got.end
        if got.time_ns is not None:
            metadata.has_time_spec = True
            metadata.time_spec = TimeSpec.from_ns(got.time_ns)

    def close(self) -> None:
        """Ends the stream; beyond UHD."""
        self._stream.close()


class TXStreamer:
    """A transmit stream, which MultiUSRP.get_tx_stream() opens."""

    def __init__(self, radio: _Radio, args: StreamArgs):
        self._element = args.element()
        self._channels = list(args.channels) or [0]
        self._stream = radio.transmit(self._channels)
        self._in_burst = False

    def get_num_channels(self) -> int:
        """The number of channels."""
        return len(self._channels)

    def get_max_num_samps(self) -> int:
        """A good number of samples for send."""
        return self._stream.samples_per_send

    def send(self, samples: npt.ArrayLike, metadata: TXMetadata, timeout: float = 0.1) -> int:
        """Sends an array with a row for each channel; returns how many samples were taken."""
        array = np.ascontiguousarray(samples, np.complex64)
        if array.ndim == 1 and len(self._channels) > 1:
            raise ValueError(f"give an array with {len(self._channels)} rows, one for each channel")
        at_ns = None
        if metadata.has_time_spec and not self._in_burst:
            at_ns = metadata.time_spec.to_ns()
        try:
            sent = self._stream.send(array, at_ns=at_ns, end=metadata.end_of_burst, timeout=timeout)
        except TimeoutError:
            return 0
        whole = sent == array.shape[-1]
        self._in_burst = not (metadata.end_of_burst and whole) and (self._in_burst or sent > 0)
        return sent

    def recv_async_msg(self, metadata: TXAsyncMetadata, timeout: float = 0.1) -> bool:
        """Waits for a report of the radio; False when none came."""
        while (event := self._stream.next_event(timeout)) is not None:
            if event.kind not in _EVENTS:
                continue
            metadata.channel = event.channel
            metadata.event_code = _EVENTS[event.kind]
            metadata.has_time_spec = event.time_ns is not None
            metadata.time_spec = TimeSpec.from_ns(event.time_ns or 0)
            return True
        return False

    def close(self) -> None:
        """Ends the stream; beyond UHD."""
        self._stream.close()


def _opened(args: str) -> _Radio:
    parts = [part.strip() for part in args.split(",") if part.strip()]
    kept = []
    for part in parts:
        key, _, value = part.partition("=")
        if key == "recv_buff_size":
            kept.append(f"recv_queue_bytes={int(float(value))}")
        elif key not in _PASSED_OVER:
            kept.append(part)
    if not any(part.split("=")[0] in ("addr", "serial", "name", "type", "radio") for part in kept):
        default = os.environ.get(VARIABLE)
        if default is None:
            found = find()
            if not found:
                raise RuntimeError(
                    "no radio answers in the networks of this machine: give MultiUSRP(\"addr=...\"), or "
                    f"set {VARIABLE}, for example to radio=emulated"
                )
            default = f"addr={found[0]['addr']}"
        kept.insert(0, default)
    return _Radio(",".join(kept))


class MultiUSRP:
    """A radio, with the methods of UHD that tutorials use."""

    def __init__(self, args: str = ""):
        self._radio = _opened(args)
        self._command_ns: int | None = None

    @property
    def radio(self) -> _Radio:
        """The radio of Millstream; beyond UHD."""
        return self._radio

    # Receiving and transmitting.

    def get_rx_stream(self, args: StreamArgs) -> RXStreamer:
        """Opens a receive stream."""
        return RXStreamer(self._radio, args)

    def get_tx_stream(self, args: StreamArgs) -> TXStreamer:
        """Opens a transmit stream."""
        return TXStreamer(self._radio, args)

    def recv_num_samps(
        self, num_samps: int, freq: float, rate: float = 1e6, channels: Sequence[int] = (0,),
        gain: float = 10, start_time: TimeSpec | None = None, streamer: RXStreamer | None = None,
    ) -> npt.NDArray[np.complex64]:
        """Sets the radio, receives so many samples and returns them, a row for each channel.

        Samples behind a gap follow directly, and a message says so on standard output.
        """
        for channel in channels:
            self.set_rx_rate(rate, channel)
            self.set_rx_freq(TuneRequest(freq), channel)
            self.set_rx_gain(gain, channel)
        own = streamer is None
        if streamer is None:
            args = StreamArgs()
            args.channels = list(channels)
            streamer = self.get_rx_stream(args)
        result = np.empty((len(channels), num_samps), np.complex64)
        command = StreamCMD(StreamMode.start_cont)
        command.stream_now = start_time is None and len(channels) == 1
        if not command.stream_now:
            command.time_spec = start_time or self.get_time_now() + TimeSpec(0.05)
        metadata = RXMetadata()
        try:
            streamer.issue_stream_cmd(command)
            got = 0
            silent = 0
            while got < num_samps:
                count = streamer.recv(result[:, got:], metadata, 1.0)
                got += count
                if metadata.error_code == RXMetadataErrorCode.timeout:
                    silent += 1
                    if silent > 10 and start_time is None:
                        raise RuntimeError(f"after {got} samples no sample came for {silent} s")
                elif metadata.error_code != RXMetadataErrorCode.none:
                    print(metadata.strerror())
                else:
                    silent = 0
            streamer.issue_stream_cmd(StreamCMD(StreamMode.stop_cont))
        finally:
            if own:
                streamer.close()
        return result

    def send_waveform(
        self, waveform_proto: npt.ArrayLike, duration: float, freq: float, rate: float = 1e6,
        channels: Sequence[int] = (0,), gain: float = 10, start_time: TimeSpec | None = None,
        streamer: TXStreamer | None = None,
    ) -> int:
        """Sets the radio and transmits a waveform again and again for `duration` seconds.

        Returns how many samples were sent on each channel.
        """
        for channel in channels:
            self.set_tx_rate(rate, channel)
            self.set_tx_freq(TuneRequest(freq), channel)
            self.set_tx_gain(gain, channel)
        own = streamer is None
        if streamer is None:
            args = StreamArgs()
            args.channels = list(channels)
            streamer = self.get_tx_stream(args)
        wave = np.atleast_2d(np.asarray(waveform_proto, np.complex64))
        if wave.shape[0] < len(channels):
            wave = np.broadcast_to(wave[:1], (len(channels), wave.shape[1]))
        wave = np.ascontiguousarray(wave)
        metadata = TXMetadata()
        metadata.start_of_burst = True
        if start_time is not None:
            metadata.has_time_spec, metadata.time_spec = True, start_time
        total = int(np.floor(duration * rate))
        sent = 0
        try:
            while sent < total:
                # Also behind samples that were not taken: the waveform goes on where it stopped.
                at = sent % wave.shape[1]
                part = wave[:, at : at + min(wave.shape[1] - at, total - sent)]
                sent += streamer.send(part, metadata, 10.0)
                metadata.has_time_spec = metadata.start_of_burst = False
            metadata.end_of_burst = True
            streamer.send(np.zeros((len(channels), 0), np.complex64), metadata, 10.0)
        finally:
            if own:
                streamer.close()
        return sent

    # Settings.

    def set_rx_rate(self, rate: float, chan: int = ALL_CHANS) -> None:
        """Sets the sample rate of receive channels."""
        self._radio.set_rate(rate, None if chan == ALL_CHANS else chan, "rx")

    def set_tx_rate(self, rate: float, chan: int = ALL_CHANS) -> None:
        """Sets the sample rate of transmit channels."""
        self._radio.set_rate(rate, None if chan == ALL_CHANS else chan, "tx")

    def get_rx_rate(self, chan: int = 0) -> float:
        """The sample rate of a receive channel."""
        return self._radio.rate(chan, "rx")

    def get_tx_rate(self, chan: int = 0) -> float:
        """The sample rate of a transmit channel."""
        return self._radio.rate(chan, "tx")

    def set_rx_freq(self, request: TuneRequest | float, chan: int = 0) -> TuneResult:
        """Tunes a receive channel."""
        return self._tune(request, chan, "rx")

    def set_tx_freq(self, request: TuneRequest | float, chan: int = 0) -> TuneResult:
        """Tunes a transmit channel."""
        return self._tune(request, chan, "tx")

    def _tune(self, request: TuneRequest | float, chan: int, direction: str) -> TuneResult:
        if not isinstance(request, TuneRequest):
            request = TuneRequest(float(request))
        tuned = self._radio.set_frequency(
            request.target_freq,
            chan,
            direction,
            oscillator_offset=request.lo_off,
            at_ns=self._command_ns,
        )
        # UHD counts the shift of the spectrum, which is the other way for a receiver.
        dsp = -tuned.shift if direction == "rx" else tuned.shift
        return TuneResult(request.target_freq, tuned.frequency, tuned.oscillator, dsp)

    def get_rx_freq(self, chan: int = 0) -> float:
        """The frequency of a receive channel."""
        return self._radio.frequency(chan, "rx").frequency

    def get_tx_freq(self, chan: int = 0) -> float:
        """The frequency of a transmit channel."""
        return self._radio.frequency(chan, "tx").frequency

    def set_rx_gain(self, gain: float, chan: int | str = 0, more: int = 0) -> None:
        """Sets the gain of a receive channel; a name of a gain between is passed over."""
        self._set_gain(gain, more if isinstance(chan, str) else chan, "rx")

    def set_tx_gain(self, gain: float, chan: int | str = 0, more: int = 0) -> None:
        """Sets the gain of a transmit channel; a name of a gain between is passed over."""
        self._set_gain(gain, more if isinstance(chan, str) else chan, "tx")

    def _set_gain(self, gain: float, channel: int, direction: str) -> None:
        """Clips the gain to its range, as UHD does, and says so."""
        low, high = self._range("gain", direction)
        taken = min(max(gain, low), high)
        if taken != gain:
            print(f"millstream: the gain is {taken} dB: the radio does not have {gain} dB", file=sys.stderr)
        self._radio.set_gain(taken, channel, direction)

    def get_rx_gain(self, chan: int = 0) -> float:
        """The gain of a receive channel."""
        return self._radio.gain(chan, "rx")

    def get_tx_gain(self, chan: int = 0) -> float:
        """The gain of a transmit channel."""
        return self._radio.gain(chan, "tx")

    def set_normalized_rx_gain(self, gain: float, chan: int = 0) -> None:
        """Sets the gain of a receive channel, 0 to 1 of its range."""
        low, high = self._range("gain", "rx")
        self.set_rx_gain(low + gain * (high - low), chan)

    def set_normalized_tx_gain(self, gain: float, chan: int = 0) -> None:
        """Sets the gain of a transmit channel, 0 to 1 of its range."""
        low, high = self._range("gain", "tx")
        self.set_tx_gain(low + gain * (high - low), chan)

    def set_rx_agc(self, enable: bool, chan: int = 0) -> None:
        """Lets the radio set the gain of a receive channel."""
        self._radio.set_automatic_gain(enable, chan)

    def _range(self, name: Literal["gain", "frequency"], direction: str) -> tuple[float, float]:
        ranges = self._radio.ranges(direction)
        if name not in ranges:
            raise RuntimeError(f"this radio's {name} cannot be set from here")
        return ranges[name]

    def get_rx_gain_range(self, chan: int = 0) -> MetaRange:
        """The range of the receive gain."""
        return MetaRange(*self._range("gain", "rx"), 1.0)

    def get_tx_gain_range(self, chan: int = 0) -> MetaRange:
        """The range of the transmit gain."""
        return MetaRange(*self._range("gain", "tx"), 0.25)

    def get_rx_freq_range(self, chan: int = 0) -> MetaRange:
        """The range of receive frequencies."""
        return MetaRange(*self._range("frequency", "rx"))

    def get_tx_freq_range(self, chan: int = 0) -> MetaRange:
        """The range of transmit frequencies."""
        return MetaRange(*self._range("frequency", "tx"))

    def set_rx_bandwidth(self, bandwidth: float, chan: int = 0) -> None:
        """Sets the analogue filter of a receive channel."""
        self._radio.set_bandwidth(bandwidth, chan, "rx")

    def get_rx_bandwidth(self, chan: int = 0) -> float:
        """The analogue filter of a receive channel."""
        return self._radio.bandwidth(chan, "rx")

    def set_tx_bandwidth(self, bandwidth: float, chan: int = 0) -> None:
        """Sets the analogue filter of a transmit channel."""
        self._radio.set_bandwidth(bandwidth, chan, "tx")

    def get_tx_bandwidth(self, chan: int = 0) -> float:
        """The analogue filter of a transmit channel."""
        return self._radio.bandwidth(chan, "tx")

    def set_rx_antenna(self, antenna: str, chan: int = 0) -> None:
        """Selects the antenna of a receive channel."""
        self._radio.set_antenna(antenna, chan, "rx")

    def get_rx_antenna(self, chan: int = 0) -> str:
        """The antenna of a receive channel."""
        return self._radio.antenna(chan, "rx")

    def get_rx_antennas(self, chan: int = 0) -> list[str]:
        """The antennas of a receive channel."""
        return list(self._radio.ranges("rx")["antennas"])

    def set_tx_antenna(self, antenna: str, chan: int = 0) -> None:
        """Selects the antenna of a transmit channel."""
        self._radio.set_antenna(antenna, chan, "tx")

    def get_tx_antenna(self, chan: int = 0) -> str:
        """The antenna of a transmit channel."""
        return self._radio.antenna(chan, "tx")

    def get_tx_antennas(self, chan: int = 0) -> list[str]:
        """The antennas of a transmit channel."""
        return list(self._radio.ranges("tx")["antennas"])

    def get_rx_num_channels(self) -> int:
        """The number of receive channels."""
        return self._radio.channels("rx")

    def get_tx_num_channels(self) -> int:
        """The number of transmit channels."""
        return self._radio.channels("tx")

    def set_rx_subdev_spec(self, spec: str, mboard: int = 0) -> None:
        """Takes the usual order of channels only."""
        self._check_subdev(spec)

    def set_tx_subdev_spec(self, spec: str, mboard: int = 0) -> None:
        """Takes the usual order of channels only."""
        self._check_subdev(spec)

    def _check_subdev(self, spec: str) -> None:
        if spec.strip() not in ("A:0 A:1", "A:0", "A:A A:B", "A:A", ""):
            raise NotImplementedError(
                f"the subdevice {spec!r} is not supported: leave it out, and name the channel instead "
                "(1 is the second one)"
            )

    # Time.

    def get_master_clock_rate(self, mboard: int = 0) -> float:
        """The rate of the radio's clock."""
        return self._radio.tick_rate

    def get_time_now(self, mboard: int = 0) -> TimeSpec:
        """The radio's time."""
        return TimeSpec.from_ns(self._radio.time_ns())

    def get_time_last_pps(self, mboard: int = 0) -> TimeSpec:
        """The radio's time at its last PPS edge."""
        return TimeSpec.from_ns(self._radio.time_ns("pps"))

    def set_time_now(self, time: TimeSpec, mboard: int = 0) -> None:
        """Sets the radio's time."""
        self._radio.set_time_ns(time.to_ns())

    def set_command_time(self, time: TimeSpec, mboard: int = 0) -> None:
        """Lets frequencies change at this time: the oscillator stays. Other settings act at once."""
        self._command_ns = time.to_ns()

    def clear_command_time(self, mboard: int = 0) -> None:
        """Lets frequencies change at once again."""
        self._command_ns = None

    def set_time_next_pps(self, time: TimeSpec, mboard: int = 0) -> None:
        """Sets the time that the radio takes at its next PPS edge."""
        self._radio.set_time_ns(time.to_ns(), "pps")

    def set_time_unknown_pps(self, time: TimeSpec) -> None:
        """Waits for a PPS edge, and sets the time at the one after it."""
        last = self._radio.time_ns("pps")
        until = clock.monotonic() + 1.5
        while self._radio.time_ns("pps") == last:
            if clock.monotonic() > until:
                raise RuntimeError("no PPS edge came in 1.5 s: check the cable and the time source")
            clock.sleep(0.01)
        self._radio.set_time_ns(time.to_ns(), "pps")
        # The time is right from the next edge on.
        clock.sleep(1.0)

    def set_clock_source(self, source: str, mboard: int = 0) -> None:
        """Selects the source of the reference clock."""
        self._radio.set_sources(clock=source)

    def get_clock_source(self, mboard: int = 0) -> str:
        """The source of the reference clock."""
        return self._radio.sources["clock"]

    def set_time_source(self, source: str, mboard: int = 0) -> None:
        """Selects the source of the PPS."""
        self._radio.set_sources(time=source)

    def get_time_source(self, mboard: int = 0) -> str:
        """The source of the PPS."""
        return self._radio.sources["time"]

    # Information.

    def get_num_mboards(self) -> int:
        """One radio."""
        return 1

    def get_mboard_name(self, mboard: int = 0) -> str:
        """The product."""
        return self._radio.info["product"]

    def get_usrp_rx_info(self, chan: int = 0) -> dict[str, str]:
        """What the radio says about itself."""
        info = self._radio.info
        return {
            "mboard_id": info["product"], "mboard_serial": info["serial"], "mboard_name": info["name"],
            "rx_antenna": self.get_rx_antenna(chan),
        }

    def get_usrp_tx_info(self, chan: int = 0) -> dict[str, str]:
        """What the radio says about itself."""
        info = self._radio.info
        return {
            "mboard_id": info["product"], "mboard_serial": info["serial"], "mboard_name": info["name"],
            "tx_antenna": self.get_tx_antenna(chan),
        }

    def get_pp_string(self) -> str:
        """The radio in words."""
        channels = f"{self.get_rx_num_channels()} receive, {self.get_tx_num_channels()} transmit channels"
        return f"{self._radio.info['product']} at {self._radio.info['addr']}: {channels}"

    def get_mboard_sensor_names(self, mboard: int = 0) -> list[str]:
        """The names of the radio's sensors."""
        return self._radio.sensors()

    def get_mboard_sensor(self, name: str, mboard: int = 0) -> SensorValue:
        """Reads a sensor of the radio."""
        return SensorValue(name, *self._radio.sensor(name))

    def get_rx_sensor_names(self, chan: int = 0) -> list[str]:
        """The names of a receive channel's sensors."""
        return self._radio.sensors(chan, "rx")

    def get_rx_sensor(self, name: str, chan: int = 0) -> SensorValue:
        """Reads a sensor of a receive channel."""
        return SensorValue(name, *self._radio.sensor(name, chan, "rx"))

    def close(self) -> None:
        """Releases the radio; beyond UHD, where it happens when the object is gone."""
        self._radio.close()


__all__ = ["ALL_CHANS", "MultiUSRP", "RXStreamer", "StreamArgs", "TXStreamer"]

