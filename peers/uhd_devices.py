#!/usr/bin/python3
"""UHD opens, tunes and streams from each of the emulated devices with a stock image.

For each: `uhd_usrp_probe` finds its blocks; the stations of a scene lie in their bin and follow the gain; every
rate of the DDC keeps their level; all channels, from a time on, hear them in the same phase; bursts through the
DUC are acknowledged at their time. An N320 does so over two links, which must both carry data. Blocks beside the
radio record, play back, generate and count, through UHD's graph, at every CHDR width. UHD's other tools end.

The devices' clocks run slowly, as their rates are beyond small machines; UHD does not notice.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

from common import UHD_EXAMPLES, Radio, skip, uhd_output
from namespace import Neighbour, enter

os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "error")
try:
    import numpy as np
    import uhd
except ImportError as missing:
    skip(f"{missing} (Debian packages python3-uhd and python3-numpy)")

STATIONS_HZ = [1e9, 2.400_25e9, 5.8e9]
# Below it the boards of N3xx devices use another oscillator.
LOW_STATION_HZ = 120e6
LEVEL_DBM = -50.0
SCENE = "".join(f"""
[[station]]
kind = "tone"
frequency = {hz!r}
level = {LEVEL_DBM}
antenna = "RX2"
""" for hz in [*STATIONS_HZ, LOW_STATION_HZ])
BINS = 1 << 12
SCALE = 0.03
# Of the wall clock, between a command and its time.
LEAD_S = 0.3
UTILITIES = ["/usr/libexec/uhd/utils", "/usr/lib/uhd/utils"]

# Name: number of channels, blocks, decimations to try, gains to try.
DEVICES = {
    "e310": (2, ["Radio#0"], (), (5, 40)),
    "e320": (2, ["DUC#0", "DDC#0", "Radio#0", "DmaFIFO#0"], (1, 3, 16), (5, 40)),
    "n310": (4, ["DUC#1", "DDC#1", "Radio#1", "Replay#0"], (8, 50, 125), (10, 31, 45, 50)),
    "n320": (2, ["DUC#1", "DDC#1", "Radio#1", "Replay#0"], (4, 25, 200), (1, 30, 48)),
    "x410": (4, ["DUC#1", "DDC#1", "Radio#1", "Replay#0"], (), ()),
}
LINK_ADDRESSES = [("10.93.1.1", "10.93.1.2"), ("10.93.2.1", "10.93.2.2")]


def spectrum_peak(samples, rate_hz):
    """Frequency of the strongest bin, and the level of its tone in dB of full scale."""
    window = np.hanning(BINS)
    bins = np.abs(np.fft.fft(samples[-BINS:] * window)) / window.sum()
    at = int(bins.argmax())
    power = sum(bins[(at + k) % BINS] ** 2 for k in (-2, -1, 0, 1, 2)) / 1.5
    return np.fft.fftfreq(BINS, 1 / rate_hz)[at], 10 * np.log10(power)


class Receiver:
    """A stream of some channels."""

    def __init__(self, radio, channels, scale=SCALE):
        arguments = uhd.usrp.StreamArgs("fc32", "sc16")
        arguments.channels = list(channels)
        self.radio, self.count, self.lead_s = radio, len(arguments.channels), LEAD_S * scale
        self.stream = radio.get_rx_stream(arguments)

    def receive(self, count):
        """`count` samples of each channel from a time on."""
        command = uhd.types.StreamCMD(uhd.types.StreamMode.num_done)
        command.num_samps = count
        command.stream_now = False
        start = self.radio.get_time_now().get_real_secs() + self.lead_s
        command.time_spec = uhd.types.TimeSpec(start)
        self.stream.issue_stream_cmd(command)
        samples = np.zeros((self.count, count), dtype=np.complex64)
        metadata = uhd.types.RXMetadata()
        got = 0
        while got < count:
            some = self.stream.recv(samples[:, got:], metadata, 10.0)
            if metadata.error_code != uhd.types.RXMetadataErrorCode.none or some == 0:
                sys.exit(f"recv after {got} of {count} samples: {metadata.strerror()}")
            if got == 0 and abs(metadata.time_spec.get_real_secs() - start) > 1e-6:
                sys.exit(f"asked for samples from {start} s on, got them from "
                         f"{metadata.time_spec.get_real_secs()} s on")
            got += some
        return samples


def check_probe(name, args):
    """`uhd_usrp_probe` lists the blocks."""
    _, blocks, _, _ = DEVICES[name]
    done = subprocess.run(["uhd_usrp_probe", "--args", args], text=True, timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0 or not all(block in done.stdout for block in blocks):
        sys.exit(f"{name}: uhd_usrp_probe ended with {done.returncode}:\n{done.stdout}")


def check_tuning(name, radio, rate_hz):
    """Every station lies in its bin, on the last channel; returns the largest distance."""
    channel = radio.get_rx_num_channels() - 1
    radio.set_rx_gain(40, channel)
    receiver, worst = Receiver(radio, [channel]), 0.0
    for hz in STATIONS_HZ + [LOW_STATION_HZ]:
        for offset_hz in (rate_hz / 20, -rate_hz / 30):
            radio.set_rx_freq(uhd.types.TuneRequest(hz - offset_hz), channel)
            want = hz - radio.get_rx_freq(channel)
            found, level = spectrum_peak(receiver.receive(2 * BINS)[0], rate_hz)
            worst = max(worst, abs(found - want) / (rate_hz / BINS))
            if worst > 1 or abs(level - LEVEL_DBM - 40) > 0.5:
                sys.exit(f"{name}: the station at {hz} Hz lies at {found} Hz and not at {want} Hz, "
                         f"at {level:.2f} dB")
    return worst


def check_gain(name, radio, rate_hz):
    """The level is that of the station and the gain; returns the largest difference."""
    receiver, worst = Receiver(radio, [0]), 0.0
    radio.set_rx_freq(uhd.types.TuneRequest(1e9 - rate_hz / 20), 0)
    for gain in DEVICES[name][3]:
        radio.set_rx_gain(gain, 0)
        _, level = spectrum_peak(receiver.receive(2 * BINS)[0], rate_hz)
        worst = max(worst, abs(level - LEVEL_DBM - gain))
    radio.set_rx_gain(40, 0)
    levels = []
    for antenna in ("RX2", "TX/RX"):
        radio.set_rx_antenna(antenna, 0)
        levels.append(spectrum_peak(receiver.receive(2 * BINS)[0], rate_hz)[1])
    radio.set_rx_antenna("RX2", 0)
    if worst > 0.5 or abs(levels[0] - levels[1] - 40) > 1:
        sys.exit(f"{name}: levels {worst:.2f} dB away from what the gain says, antennas {levels}")
    return worst


def check_rates(name, radio):
    """The station keeps place and level at every rate; returns the largest difference in dB."""
    clock, worst = radio.get_master_clock_rate(), 0.0
    for decimation in DEVICES[name][2]:
        radio.set_rx_rate(clock / decimation, 0)
        rate_hz = radio.get_rx_rate(0)
        if abs(rate_hz - clock / decimation) > 1:
            sys.exit(f"{name}: asked for {clock / decimation} samples/s, got {rate_hz}")
        receiver = Receiver(radio, [0])
        radio.set_rx_freq(uhd.types.TuneRequest(1e9 - rate_hz / 40), 0)
        found, level = spectrum_peak(receiver.receive(2 * BINS)[0], rate_hz)
        want = 1e9 - radio.get_rx_freq(0)
        worst = max(worst, abs(level - LEVEL_DBM - 40))
        if abs(found - want) > rate_hz / BINS or worst > 0.5:
            sys.exit(f"{name} at {rate_hz} samples/s: {found} Hz, {level:.2f} dB")
        del receiver
    return worst


def check_channels(name, radio, rate_hz, scale=SCALE):
    """All channels, from a time on, hear the same station in the same phase."""
    channels = range(DEVICES[name][0])
    if radio.get_rx_num_channels() != len(channels):
        sys.exit(f"{name}: {radio.get_rx_num_channels()} channels")
    radio.set_rx_rate(rate_hz)
    for channel in channels:
        radio.set_rx_gain(40, channel)
        radio.set_rx_antenna("RX2", channel)
        radio.set_rx_freq(uhd.types.TuneRequest(1e9 - rate_hz / 20), channel)
    radio.set_time_now(uhd.types.TimeSpec(0.0))
    samples = Receiver(radio, channels, scale).receive(30_000)[:, 1000:]
    first, worst = samples[0], 0.0
    found, level = spectrum_peak(first, rate_hz)
    if abs(found - rate_hz / 20) > 2 * rate_hz / BINS or abs(level - LEVEL_DBM - 40) > 0.5:
        sys.exit(f"{name}: the station lies at {found} Hz, at {level:.2f} dB")
    for other in samples[1:]:
        product = np.vdot(first, other)
        alike = abs(product) / np.sqrt(np.vdot(first, first) * np.vdot(other, other)).real
        worst = max(worst, abs(np.angle(product)))
        if worst > 0.01 or alike < 0.99:
            sys.exit(f"{name}: channels {np.angle(product):.3f} rad apart, correlation {alike:.3f}")
    return worst


def check_transmit(name, radio, rate_hz):
    """A burst on each channel is acknowledged at its time; returns the samples sent."""
    count, sent = 5_000, 0
    wave = np.full((1, count), 0.5, dtype=np.complex64)
    for channel in range(DEVICES[name][0]):
        radio.set_tx_rate(rate_hz, channel)
        radio.set_tx_freq(uhd.types.TuneRequest(1e9), channel)
        arguments = uhd.usrp.StreamArgs("fc32", "sc16")
        arguments.channels = [channel]
        stream = radio.get_tx_stream(arguments)
        metadata = uhd.types.TXMetadata()
        metadata.start_of_burst, metadata.end_of_burst = True, True
        metadata.has_time_spec = True
        start = radio.get_time_now().get_real_secs() + LEAD_S * SCALE
        metadata.time_spec = uhd.types.TimeSpec(start)
        if stream.send(wave, metadata, 10.0) != count:
            sys.exit(f"{name}: send took too few samples")
        event = uhd.types.TXAsyncMetadata()
        if not stream.recv_async_msg(event, 10.0):
            sys.exit(f"{name}: the burst of channel {channel} was not acknowledged")
        late = event.time_spec.get_real_secs() - (start + count / radio.get_tx_rate(channel))
        if event.event_code != uhd.types.TXMetadataEventCode.burst_ack or abs(late) > 2 / rate_hz:
            sys.exit(f"{name}: channel {channel}: {event.event_code}, {late} s late")
        sent += count
        del stream
    return sent


def check_device(name, args):
    """All checks of a device; returns the samples transmitted."""
    started = time.monotonic()
    check_probe(name, args)
    radio = uhd.usrp.MultiUSRP(args)
    # Without a DDC the rate of the host is that of the radio.
    rate_hz = {"e310": 2e6, "e320": 1e6, "n310": 1.25e6, "n320": 2e6}[name]
    radio.set_rx_rate(rate_hz)
    clock = radio.get_master_clock_rate()
    bins = check_tuning(name, radio, rate_hz)
    gain = check_gain(name, radio, rate_hz)
    rates = check_rates(name, radio)
    turned = check_channels(name, radio, rate_hz)
    sent = check_transmit(name, radio, rate_hz)
    del radio
    print(f"{name}: tuned within {bins:.2f} bins; gains {DEVICES[name][3]} dB within {gain:.2f} dB; "
          f"rates {clock / 1e6:g} MS/s / {DEVICES[name][2]} within {rates:.2f} dB; "
          f"{DEVICES[name][0]} channels within {turned:.4f} rad; {sent} samples sent in bursts "
          f"({time.monotonic() - started:.0f} s)")
    return sent


def check_loopback_device(name, scene):
    """A device at a loopback address."""
    with Radio("--device", name, "--scene", scene, "--time-scale", str(SCALE)) as served:
        args = f"addr={served.addr}"
        sent = check_device(name, args)
        if name == "n310":
            check_tools(served.addr)
    # A tool transmits, too.
    if served.counters["tx_samples"] < sent or served.counters["rx_overruns"] != 0:
        sys.exit(f"{name}: {served.counters}")


def check_tools(addr):
    """Tools that ask for more than a device has end, and do not crash."""
    for program in ["gpio", "usrp_list_sensors", "query_gpsdo_sensors"]:
        path = shutil.which(program, path=os.pathsep.join(UTILITIES + UHD_EXAMPLES))
        if path is None:
            continue
        done = subprocess.run([path, "--args", f"addr={addr}"], text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        # Without a GPS receiver, and with pins that nothing drives, they end with a small number.
        if not 0 <= done.returncode < 10:
            sys.exit(f"{program} ended with {done.returncode}:\n{done.stdout}")


def received_bytes(interface):
    """Bytes that an interface has received."""
    with open("/proc/net/dev", encoding="ascii") as table:
        line = next(line for line in table if line.split(":")[0].strip() == interface)
    return int(line.split(":")[1].split()[0])


def check_two_links(scene, neighbour):
    """An N320 in a network of its own, at two addresses of two networks."""
    (_, first), (_, second) = LINK_ADDRESSES
    with Radio("--device", "n320", "--scene", scene, "--time-scale", str(SCALE), "--link", "udp",
               "--second-link", "udp", "--second-addr", second, addr=first,
               inside=neighbour.inside()) as served:
        before = [received_bytes(name) for name in ("peer0", "peer1")]
        sent = check_device("n320", f"addr={first},second_addr={second}")
        carried = [received_bytes(name) - old for name, old in zip(("peer0", "peer1"), before)]
    if served.counters["tx_samples"] != sent or served.counters["rx_overruns"] != 0:
        sys.exit(f"n320: {served.counters}")
    # The last channel is on the second link: tuning; the first on the other: gain and rates.
    data = served.counters["rx_bytes"]
    if min(carried) < 0.2 * data or sum(carried) < data:
        sys.exit(f"n320: the links carried {carried} bytes of {data} bytes of samples")
    print(f"n320: of {data} bytes of samples the links carried {carried[0]} and {carried[1]}, with "
          "headers and control")


class Graph:
    """UHD's graph of a device with all blocks."""

    def __init__(self, addr):
        self.graph = uhd.rfnoc.RfnocGraph(f"addr={addr}")

    def block(self, name, kind):
        """A block and its id."""
        block_id = uhd.rfnoc.BlockID(name)
        return kind(self.graph.get_block(block_id)), block_id

    def receive_from(self, block_id, port, count, start, endless=False):
        """`count` samples of sc16 from a port, after the command that `start()` returns, if it does."""
        arguments = uhd.usrp.StreamArgs("sc16", "sc16")
        stream = self.graph.create_rx_streamer(1, arguments)
        self.graph.connect(block_id, port, stream, 0)
        self.graph.commit()
        command = start()
        if command is not None:
            stream.issue_stream_cmd(command)
        samples, metadata, got = np.zeros((1, count), dtype=np.int32), uhd.types.RXMetadata(), 0
        while got < count:
            some = stream.recv(samples[:, got:], metadata, 5.0)
            if some == 0:
                sys.exit(f"{block_id}:{port} after {got} of {count} samples: {metadata.strerror()}")
            got += some
        if endless:
            stream.issue_stream_cmd(uhd.types.StreamCMD(uhd.types.StreamMode.stop_cont))
        return samples[0]


def check_replay(graph, count):
    """What the host sends to a replay block comes back, bit by bit."""
    replay, replay_id = graph.block("0/Replay#0", uhd.rfnoc.ReplayBlockControl)
    replay.set_record_type("sc16", 0)
    replay.set_play_type("sc16", 0)
    arguments = uhd.usrp.StreamArgs("sc16", "sc16")
    stream = graph.graph.create_tx_streamer(1, arguments)
    graph.graph.connect(stream, 0, replay_id, 0)
    graph.graph.commit()
    replay.record(0, 4 * count, 0)
    want = np.random.default_rng(count).integers(-2**31, 2**31, (1, count), dtype=np.int32)
    metadata = uhd.types.TXMetadata()
    metadata.end_of_burst = True
    if stream.send(want, metadata, 5.0) != count:
        sys.exit("the replay block took too few samples")
    deadline = time.monotonic() + 5
    while replay.get_record_fullness(0) < 4 * count:
        if time.monotonic() > deadline:
            sys.exit(f"recorded {replay.get_record_fullness(0)} of {4 * count} bytes")
    del stream

    def start():
        replay.config_play(0, 4 * count, 0)
        command = uhd.types.StreamCMD(uhd.types.StreamMode.num_done)
        command.num_samps, command.stream_now = count, True
        return command
    got = graph.receive_from(replay_id, 0, count, start)
    if not np.array_equal(got, want[0]):
        sys.exit(f"of {count} samples {np.count_nonzero(got != want[0])} differ behind the replay block")


def check_generator(graph):
    """A sine of the generator has its frequency and amplitude."""
    generator, generator_id = graph.block("0/SigGen#0", uhd.rfnoc.SiggenBlockControl)
    generator.set_samples_per_packet(500, 0)
    generator.set_waveform(uhd.rfnoc.lib.rfnoc.siggen_waveform.SINE_WAVE, 0)
    generator.set_amplitude(0.5, 0)
    generator.set_sine_frequency(0.1e6, 1e6, 0)

    def start():
        generator.set_enable(True, 0)
    got = graph.receive_from(generator_id, 0, 2 * BINS, start)
    generator.set_enable(False, 0)
    parts = got.view(np.int16).astype(float).reshape(-1, 2) / 32768
    found, level = spectrum_peak(parts[:, 0] + 1j * parts[:, 1], 1e6)
    if abs(found - 0.1e6) > 1e6 / BINS or abs(level + 6.02) > 0.1:
        sys.exit(f"the generator's tone lies at {found} Hz, at {level:.2f} dB")
    return found, level


def check_null(graph, width):
    """The lines of the null source are numbered."""
    null, null_id = graph.block("0/NullSrcSink#0", uhd.rfnoc.NullBlockControl)
    null.set_bytes_per_packet(1024)

    def start():
        return uhd.types.StreamCMD(uhd.types.StreamMode.start_cont)
    got = graph.receive_from(null_id, 0, 4096, start, endless=True)
    low, high = got & 0xffff, got >> 16 & 0xffff
    lines = (high[0] + np.arange(len(got)) // (width // 32)) & 0xffff
    if np.any(low != 0xffff - high) or np.any(high != lines):
        sys.exit("the items of the null source are not those of its lines")


def check_blocks(scene):
    """Blocks beside the radio, at every CHDR width."""
    for width in (64, 128, 256, 512):
        with Radio("--device", "e320", "--extra-blocks", "--chdr-width", str(width), "--scene", scene,
                   "--time-scale", str(SCALE)) as served:
            graph = Graph(served.addr)
            check_replay(graph, 20_002)
            found, level = check_generator(graph)
            check_null(graph, width)
            del graph
            radio = uhd.usrp.MultiUSRP(f"addr={served.addr}")
            turned = check_channels("e320", radio, 1e6)
            del radio
        print(f"{width} bits: a recording is played back bit by bit; the generator is at {found:.0f} Hz and "
              f"{level:+.2f} dB; lines are numbered; channels within {turned:.4f} rad")


def check_replay_to_radio(folder):
    """UHD's example plays a file by a replay block into a radio, which transmits it."""
    count = 50_000
    values = np.random.default_rng(1).integers(-2**31, 2**31, count, dtype=np.int32)
    source, sent = os.path.join(folder, "source.sc16"), os.path.join(folder, "sent.sc16")
    values.tofile(source)
    with Radio("--device", "n310", "--tx-out", sent, "--time-scale", str(SCALE)) as served:
        uhd_output("rfnoc_replay_samples_from_file", "--args", f"addr={served.addr}", "--file", source,
                   "--nsamps", str(count), "--rate", "125e6", "--freq", "1e9")
    got = np.fromfile(sent, dtype=np.int32)
    if served.counters["tx_underflows"] != 0 or not np.array_equal(got, values):
        sys.exit(f"the radio transmitted {len(got)} samples, not those of the file, and had "
                 f"{served.counters['tx_underflows']} underflows")
    print(f"n310: the replay block plays {count} samples into the radio, which transmits them")


def check_x410():
    """An X410, on whose signal tuning has no effect: a tone reaches four channels in phase."""
    with Radio("--device", "x410", "--rx-antenna", "tone:200e3", "--time-scale", str(SCALE)) as served:
        args = f"addr={served.addr}"
        check_probe("x410", args)
        radio = uhd.usrp.MultiUSRP(args)
        radio.set_rx_rate(2.4576e6)
        rate_hz = radio.get_rx_rate()
        for channel in range(4):
            radio.set_rx_freq(uhd.types.TuneRequest(1e9), channel)
            radio.set_rx_gain(30, channel)
        radio.set_time_now(uhd.types.TimeSpec(0.0))
        samples = Receiver(radio, range(4)).receive(30_000)[:, 1000:]
        found, level = spectrum_peak(samples[0], rate_hz)
        worst = max(abs(np.angle(np.vdot(samples[0], other))) for other in samples[1:])
        if abs(found - 200e3) > rate_hz / BINS or abs(level + 6.02) > 0.2 or worst > 0.01:
            sys.exit(f"x410: the tone lies at {found} Hz, at {level:.2f} dB, {worst} rad apart")
        sent = check_transmit("x410", radio, rate_hz)
        del radio
    if served.counters["tx_samples"] != sent or served.counters["rx_overruns"] != 0:
        sys.exit(f"x410: {served.counters}")
    print(f"x410: a tone at {found:.0f} Hz and {level:+.2f} dB on 4 channels within {worst:.4f} rad; "
          f"{sent} samples sent in bursts")


def check_real_time(scene):
    """With its clock at full speed, four channels of an N310 hear the same, without an overrun."""
    with Radio("--device", "n310", "--scene", scene) as served:
        radio = uhd.usrp.MultiUSRP(f"addr={served.addr}")
        turned = check_channels("n310", radio, 1.25e6, 1.0)
        del radio
    if served.counters["rx_overruns"] != 0:
        sys.exit(f"n310: {served.counters['rx_overruns']} overruns at full speed")
    print(f"n310 at full speed: 4 channels of 1.25 MS/s within {turned:.4f} rad, no overrun")


def main():
    """All devices, each with a radio of its own."""
    enter()
    # UHD resolves no address, not even of loopback, where there is no other interface.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log, Neighbour(
            ["sleep", "1000"], *LINK_ADDRESSES[0], log, 9000,
            further=LINK_ADDRESSES[1:]) as neighbour:
        scene = os.path.join(folder, "scene.toml")
        with open(scene, "w", encoding="utf-8") as file:
            file.write(SCENE)
        check_loopback_device("e310", scene)
        check_loopback_device("e320", scene)
        check_loopback_device("n310", scene)
        check_two_links(scene, neighbour)
        check_x410()
        check_real_time(scene)
        check_blocks(scene)
        check_replay_to_radio(folder)


if __name__ == "__main__":
    main()
