#!/usr/bin/python3
"""UHD tunes an emulated E320 with its stock image, and hears stations where they are.

Stations of a scene lie at absolute frequencies. By UHD's own values (frequency, gain, rate) each must
appear in its bin, at its level, at every rate that the DDC makes; both channels must agree sample by
sample in time; and bursts through the DUC must be acknowledged at their time.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import os
import subprocess
import sys
import tempfile

from common import Radio, skip

os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "error")
try:
    import numpy as np
    import uhd
except ImportError as missing:
    skip(f"{missing} (Debian packages python3-uhd and python3-numpy)")

STATIONS_HZ = [433.92e6, 1e9, 2.400_25e9, 5.8e9]
LEVEL_DBM = -50.0
SCENE = "".join(f"""
[[station]]
kind = "tone"
frequency = {hz!r}
level = {LEVEL_DBM}
antenna = "RX2"
""" for hz in STATIONS_HZ)
BINS = 1 << 14
BLOCKS = ["DUC#0", "DDC#0", "Radio#0", "DmaFIFO#0"]


def spectrum_peak(samples, rate_hz):
    """Frequency of the strongest bin, and the level of its tone in dB of full scale."""
    window = np.hanning(BINS)
    bins = np.abs(np.fft.fft(samples[-BINS:] * window)) / window.sum()
    at = int(bins.argmax())
    # A tone between two bins: the three strongest hold its power, 1.5 bins of noise bandwidth.
    power = sum(bins[(at + k) % BINS] ** 2 for k in (-2, -1, 0, 1, 2)) / 1.5
    return np.fft.fftfreq(BINS, 1 / rate_hz)[at], 10 * np.log10(power)


class Receiver:
    """A stream of channel 0."""

    def __init__(self, radio, channels=(0,)):
        self.radio = radio
        arguments = uhd.usrp.StreamArgs("fc32", "sc16")
        arguments.channels = list(channels)
        self.channels = list(channels)
        self.stream = radio.get_rx_stream(arguments)

    def receive(self, count, lead_s=0.3):
        """`count` samples of each channel, and the time of the first."""
        command = uhd.types.StreamCMD(uhd.types.StreamMode.num_done)
        command.num_samps = count
        command.stream_now = False
        start = self.radio.get_time_now().get_real_secs() + lead_s
        command.time_spec = uhd.types.TimeSpec(start)
        self.stream.issue_stream_cmd(command)
        samples = np.zeros((len(self.channels), count), dtype=np.complex64)
        metadata = uhd.types.RXMetadata()
        got, first = 0, None
        while got < count:
            some = self.stream.recv(samples[:, got:], metadata, 5.0)
            if metadata.error_code != uhd.types.RXMetadataErrorCode.none or some == 0:
                sys.exit(f"recv after {got} of {count} samples: {metadata.strerror()}")
            first = metadata.time_spec.get_real_secs() if first is None else first
            got += some
        if abs(first - start) > 1e-6:
            sys.exit(f"asked for samples from {start} s on, got them from {first} s on")
        return samples


def check_frequencies(radio, receiver, rate_hz):
    """Every station lies in its bin, above and below the frequency of the radio."""
    worst = 0.0
    for hz in STATIONS_HZ:
        for offset_hz in (100e3, -200e3):
            radio.set_rx_freq(uhd.types.TuneRequest(hz - offset_hz), 0)
            want = hz - radio.get_rx_freq(0)
            found, _ = spectrum_peak(receiver.receive(2 * BINS)[0], rate_hz)
            bins = (found - want) / (rate_hz / BINS)
            worst = max(worst, abs(bins))
            if abs(bins) > 1:
                sys.exit(f"the station at {hz} Hz lies at {found} Hz, {bins:+.1f} bins off")
    # The oscillator aside, the DDC makes the rest.
    radio.set_rx_freq(uhd.types.TuneRequest(1e9 - 100e3, 3e6), 0)
    found, _ = spectrum_peak(receiver.receive(2 * BINS)[0], rate_hz)
    want = 1e9 - radio.get_rx_freq(0)
    if abs(found - want) > rate_hz / BINS:
        sys.exit(f"with the oscillator 3 MHz away it lies at {found} Hz, not {want} Hz")
    print(f"tuning: {2 * len(STATIONS_HZ)} frequencies and an offset oscillator, at most "
          f"{worst:.2f} bins off")


def check_gain(radio, receiver, rate_hz):
    """The level is that of the station and the gain, and the noise follows."""
    radio.set_rx_freq(uhd.types.TuneRequest(1e9 - 100e3), 0)
    worst, floors = 0.0, []
    for gain in (10, 20, 30, 40):
        radio.set_rx_gain(gain, 0)
        samples = receiver.receive(2 * BINS)[0]
        _, level = spectrum_peak(samples, rate_hz)
        worst = max(worst, abs(level - (LEVEL_DBM + gain)))
    if worst > 0.5:
        sys.exit(f"the level is {worst:.2f} dB away from what the gain says")
    radio.set_rx_freq(uhd.types.TuneRequest(3e9), 0)
    for gain in (20, 50, 70):
        radio.set_rx_gain(gain, 0)
        samples = receiver.receive(2 * BINS)[0][BINS:]
        floors.append(10 * np.log10(np.mean(np.abs(samples) ** 2)) - gain)
    if not floors[0] > floors[1] > floors[2] - 1:
        sys.exit(f"the noise at the input does not fall with the gain: {floors}")
    radio.set_rx_freq(uhd.types.TuneRequest(1e9 - 100e3), 0)
    radio.set_rx_gain(75, 0)
    most = np.abs(receiver.receive(BINS)[0]).max()
    if most > 1.5:
        sys.exit(f"full scale is exceeded: {most}")
    radio.set_rx_gain(30, 0)
    print(f"gain: 10 to 40 dB, levels at most {worst:.2f} dB off; noise at the input "
          f"{', '.join(f'{floor:.0f}' for floor in floors)} dBm at 20, 50, 70 dB; saturates")


def check_antenna(radio, receiver, rate_hz):
    """The other antenna hears the station 40 dB lower."""
    levels = []
    radio.set_rx_gain(40, 0)
    for antenna in ("RX2", "TX/RX"):
        radio.set_rx_antenna(antenna, 0)
        levels.append(spectrum_peak(receiver.receive(2 * BINS)[0], rate_hz)[1])
    radio.set_rx_antenna("RX2", 0)
    if abs(levels[0] - levels[1] - 40) > 1:
        sys.exit(f"antennas: {levels} dB, not 40 dB apart")
    print(f"antenna: TX/RX hears the station of RX2 {levels[0] - levels[1]:.1f} dB lower")


def check_sensors(radio):
    """Sensors that applications poll."""
    radio.set_rx_freq(uhd.types.TuneRequest(1e9), 0)
    names = set(radio.get_rx_sensor_names(0))
    if not {"lo_locked", "rssi"} <= names:
        sys.exit(f"sensors: {names}")
    strength = radio.get_rx_sensor("rssi", 0).to_real()
    if abs(strength - LEVEL_DBM) > 1:
        sys.exit(f"rssi {strength} dB, not {LEVEL_DBM} dB")
    print(f"sensors: rssi {strength} dB, of {', '.join(sorted(names))}")


def check_rates(radio):
    """The station keeps its place and level at every rate of the DDC."""
    clock = radio.get_master_clock_rate()
    done = []
    for decimation in (1, 2, 3, 5, 8, 16, 50, 100):
        radio.set_rx_rate(clock / decimation, 0)
        rate_hz = radio.get_rx_rate(0)
        receiver = Receiver(radio)
        radio.set_rx_gain(30, 0)
        # Near the middle: a CIC filter alone, at odd decimations, is 0.5 dB down at a tenth.
        offset_hz = rate_hz / 20
        radio.set_rx_freq(uhd.types.TuneRequest(1e9 - offset_hz), 0)
        found, level = spectrum_peak(receiver.receive(2 * BINS)[0], rate_hz)
        want = 1e9 - radio.get_rx_freq(0)
        if abs(found - want) > rate_hz / BINS or abs(level - LEVEL_DBM - 30) > 0.5:
            sys.exit(f"at {rate_hz} samples/s: {found} Hz, {level:.2f} dB")
        done.append(f"{rate_hz / 1e6:.3g} ({level - LEVEL_DBM - 30:+.2f} dB)")
        del receiver
    print(f"rates in MS/s: {', '.join(done)}")


def check_channels(radio, rate_hz):
    """Both channels, from a time on, hear the same station in the same phase."""
    radio.set_rx_rate(rate_hz)
    for channel in (0, 1):
        radio.set_rx_gain(40, channel)
        radio.set_rx_antenna("RX2", channel)
        radio.set_rx_freq(uhd.types.TuneRequest(1e9 - 100e3), channel)
    radio.set_time_now(uhd.types.TimeSpec(0.0))
    first, second = Receiver(radio, (0, 1)).receive(100_000, 1.0)[:, 1000:]
    turned = np.angle(np.vdot(first, second))
    alike = abs(np.vdot(first, second)) / np.sqrt(np.vdot(first, first) * np.vdot(second, second))
    if abs(turned) > 0.01 or abs(alike) < 0.99:
        sys.exit(f"channels: {turned:.3f} rad apart, correlation {abs(alike):.3f}")
    print(f"two channels from a time on: {turned:+.4f} rad apart, correlation {abs(alike):.4f}")


def check_transmit(radio):
    """Bursts through the DUC are acknowledged."""
    radio.set_tx_rate(500e3, 0)
    radio.set_tx_freq(uhd.types.TuneRequest(1e9), 0)
    arguments = uhd.usrp.StreamArgs("fc32", "sc16")
    arguments.channels = [0]
    stream = radio.get_tx_stream(arguments)
    count = 20_000
    wave = (0.5 * np.ones((1, count))).astype(np.complex64)
    for burst in range(3):
        metadata = uhd.types.TXMetadata()
        metadata.start_of_burst, metadata.end_of_burst = True, True
        metadata.has_time_spec = True
        start = radio.get_time_now().get_real_secs() + 0.3
        metadata.time_spec = uhd.types.TimeSpec(start)
        if stream.send(wave, metadata, 5.0) != count:
            sys.exit("send took too few samples")
        event = uhd.types.TXAsyncMetadata()
        if not stream.recv_async_msg(event, 5.0):
            sys.exit(f"burst {burst} was not acknowledged")
        if event.event_code != uhd.types.TXMetadataEventCode.burst_ack:
            sys.exit(f"burst {burst}: {event.event_code}")
        late = event.time_spec.get_real_secs() - (start + count / 500e3)
        if abs(late) > 2 / 500e3:
            sys.exit(f"burst {burst} ended {late} s late")
    return 3 * count


def main():
    """All checks with one radio."""
    with tempfile.TemporaryDirectory() as folder:
        scene, sent = os.path.join(folder, "scene.toml"), os.path.join(folder, "sent.sc16")
        with open(scene, "w", encoding="utf-8") as file:
            file.write(SCENE)
        # A second at 16 MS/s: no stall of a busy machine shows as an overrun.
        patient = ["--rx-buffer-samples", str(1 << 24)]
        with Radio("--device", "e320", "--scene", scene, "--tx-out", sent, *patient) as served:
            probed = subprocess.run(["uhd_usrp_probe", "--args", f"addr={served.addr}"], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                    check=False)
            if probed.returncode != 0 or not all(name in probed.stdout for name in BLOCKS):
                sys.exit(f"uhd_usrp_probe ended with {probed.returncode}:\n{probed.stdout}")
            print(f"uhd_usrp_probe: {', '.join(BLOCKS)}")
            radio = uhd.usrp.MultiUSRP(f"addr={served.addr}")
            rate_hz = 1e6
            radio.set_rx_rate(rate_hz, 0)
            radio.set_rx_gain(30, 0)
            receiver = Receiver(radio)
            check_frequencies(radio, receiver, rate_hz)
            check_gain(radio, receiver, rate_hz)
            check_antenna(radio, receiver, rate_hz)
            check_sensors(radio)
            del receiver
            check_rates(radio)
            check_channels(radio, rate_hz)
            samples = check_transmit(radio)
            del radio
        if served.counters["tx_samples"] != samples:
            sys.exit(f"the radio played {served.counters['tx_samples']} samples, not {samples}")
        wave = np.fromfile(sent, dtype="<i2").reshape(-1, 2) / 32768
        level = 20 * np.log10(np.median(np.hypot(wave[:, 0], wave[:, 1])))
        if len(wave) != samples * 32 or abs(level + 6.02) > 0.1:
            sys.exit(f"the radio transmitted {len(wave)} samples at {level:.2f} dB")
        print(f"transmit: 3 bursts acknowledged at their time, {len(wave)} samples of the radio "
              f"for {samples} of the host, {level:+.2f} dB")


if __name__ == "__main__":
    main()
