#!/usr/bin/python3
"""The same script with UHD's Python module and with millstream.uhd_compat, against one emulated radio.

Only the import differs. Both must see the same samples at the same times, the same codes for a late start and for gaps, the
same frequencies, gains and acknowledgements.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import contextlib
import io
import os
import sys

from common import ROOT, Radio, skip

os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "error")
SITE = os.path.join(ROOT, "target/python/site")
if not os.path.isdir(SITE):
    skip(f"no {SITE} (run make test-python)")
sys.path.insert(0, SITE)
try:
    import numpy as np
    import uhd
except ImportError as missing:
    skip(f"{missing} (Debian packages python3-uhd and python3-numpy)")
import millstream.uhd_compat

RATE_HZ = 1e6
SAMPLES = 50_001
FULL_SCALE = 32767
PATIENT = ["--rx-buffer-samples", str(1 << 22)]


def ticks(samples):
    """The counter of ticks that the antenna put into the samples."""
    low, high = (np.rint(part * FULL_SCALE).astype(np.int64) & 0xFFFF
                 for part in (samples.real, samples.imag))
    return high << 16 | low


def exact(name, samples, start):
    """Ends the peer unless sample n is of tick start + n."""
    wrong = np.flatnonzero(ticks(samples) != start + np.arange(samples.size))
    if wrong.size:
        sys.exit(f"{name}: sample {wrong[0]} is of tick {ticks(samples)[wrong[0]]}")


def receptions(uhd, args, name):
    """What a script sees of timed, late and interrupted receptions."""
    radio = uhd.usrp.MultiUSRP(args)
    radio.set_rx_rate(RATE_HZ)
    radio.set_time_now(uhd.types.TimeSpec(0.0))
    seen = {}
    with contextlib.redirect_stdout(io.StringIO()):
        samples = radio.recv_num_samps(SAMPLES, 1e9, RATE_HZ, [0], 0, uhd.types.TimeSpec(0.4))
    exact(name, samples[0], 400_000)
    seen["recv_num_samps"] = samples.shape, str(samples.dtype)
    arguments = uhd.usrp.StreamArgs("fc32", "sc16")
    arguments.channels = [0]
    streamer = radio.get_rx_stream(arguments)
    buffer, metadata = np.zeros((1, SAMPLES), np.complex64), uhd.types.RXMetadata()
    command = uhd.types.StreamCMD(uhd.types.StreamMode.num_done)
    command.num_samps, command.stream_now = SAMPLES - 1, False
    now = radio.get_time_now().get_real_secs()
    command.time_spec = uhd.types.TimeSpec(now + 0.2)
    start = command.time_spec.to_ticks(RATE_HZ)
    command.time_spec = uhd.types.TimeSpec.from_ticks(start, RATE_HZ)
    streamer.issue_stream_cmd(command)
    got = 0
    while got < SAMPLES - 1:
        count = streamer.recv(buffer[:, got:], metadata, 3.0)
        if got == 0:
            first = metadata.time_spec.to_ticks(RATE_HZ)
            seen["first"] = first - start, metadata.has_time_spec, metadata.error_code.name
        if count == 0:
            sys.exit(f"{name}: after {got} samples {metadata.strerror()}")
        got += count
    exact(name, buffer[0, :SAMPLES - 1], start)
    seen["end"] = metadata.end_of_burst
    seen["quiet"] = streamer.recv(buffer, metadata, 0.1), metadata.error_code.name
    command.time_spec = uhd.types.TimeSpec(0.1)
    streamer.issue_stream_cmd(command)
    seen["late"] = streamer.recv(buffer, metadata, 3.0), metadata.error_code.name
    del streamer
    del radio
    return seen


def settings(uhd, args, _name):
    """What a script reads back, and the acknowledgement of a burst."""
    radio = uhd.usrp.MultiUSRP(args)
    seen = {"channels": (radio.get_rx_num_channels(), radio.get_tx_num_channels()),
            "antennas": list(radio.get_rx_antennas(0)), "gains": radio.get_rx_gain_range(0).stop()}
    radio.set_rx_rate(1e6, 0)
    radio.set_tx_rate(1e6, 0)
    seen["rates"] = radio.get_rx_rate(0), radio.get_tx_rate(0)
    result = radio.set_rx_freq(uhd.types.TuneRequest(1e9, 2e6), 0)
    seen["tuned"] = tuple(round(hz) for hz in (
        radio.get_rx_freq(0), result.actual_rf_freq, result.actual_dsp_freq))
    for gain in (0, 30, 99):
        radio.set_rx_gain(gain, 0)
        seen[f"gain {gain}"] = radio.get_rx_gain(0)
    radio.set_normalized_rx_gain(0.5, 0)
    seen["normalized"] = radio.get_rx_gain(0)
    radio.set_rx_antenna("TX/RX", 0)
    seen["antenna"] = radio.get_rx_antenna(0)
    arguments = uhd.usrp.StreamArgs("fc32", "sc16")
    arguments.channels = [0]
    streamer = radio.get_tx_stream(arguments)
    metadata, event = uhd.types.TXMetadata(), uhd.types.TXAsyncMetadata()
    metadata.start_of_burst, metadata.end_of_burst, metadata.has_time_spec = True, True, True
    start = radio.get_time_now().get_real_secs() + 0.3
    metadata.time_spec = uhd.types.TimeSpec(start)
    sent = streamer.send(np.full((1, 20_000), 0.5, np.complex64), metadata, 3.0)
    came = streamer.recv_async_msg(event, 3.0)
    off = event.time_spec.get_real_secs() - (start + 0.02)
    seen["burst"] = sent, came, event.event_code.name, abs(off) < 3e-6
    del streamer
    seen["sent"] = radio.send_waveform(np.full(1000, 0.1, np.complex64), 0.05, 1e9, 1e6, [0], 10)
    del radio
    return seen


def compare(what, script, *options):
    """Runs a script with both modules and compares what it saw."""
    seen = []
    for name, module in (("uhd", uhd), ("millstream.uhd_compat", millstream.uhd_compat)):
        with Radio(*PATIENT, *options) as served:
            seen.append(script(module, f"addr={served.addr}", name))
    differ = {key: (seen[0][key], seen[1].get(key)) for key in seen[0] if seen[0][key] != seen[1].get(key)}
    if differ:
        sys.exit(f"{what}: UHD and uhd_compat see different things: {differ}")
    print(f"{what}: {len(seen[0])} results are the same: {', '.join(map(str, seen[0]))}")


def main():
    """All cases."""
    compare("receptions", receptions, "--rx-antenna", "ramp")
    compare("settings and transmission", settings, "--device", "e320")


if __name__ == "__main__":
    main()
