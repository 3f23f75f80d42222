#!/usr/bin/python3
"""GNU Radio's own SoapySDR blocks (gr-soapy) over our module.

  tone    a flowgraph finds the station of a scene where it should be, and elsewhere after a retune
  zeros   with gaps=zeros every sample stands at its own time, although packets are lost: these blocks drop all times
  send    a sink transmits a burst, which the radio writes into a file

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import os
import tempfile
import time

from common import skip
from soapy_common import RAMP, text_of, use_module

use_module()
try:
    import numpy as np
    from gnuradio import blocks, gr, soapy
except ImportError as missing:
    skip(f"{missing} (Debian packages gnuradio and python3-numpy)")

STATION_HZ = 433.92e6
LOST, PACKET = 5, 500


def source(args, kind, rate_hz, stream="", frequency_hz=None):
    """A source of one channel."""
    block = soapy.source("driver=millstream", kind, 1, text_of(args), stream, [""], [""])
    block.set_sample_rate(0, rate_hz)
    if frequency_hz is not None:
        block.set_frequency(0, frequency_hz)
        block.set_gain(0, 40)
    return block


def received(block, count, item=gr.sizeof_gr_complex, sink=None):
    """The next samples of a source."""
    top, sink = gr.top_block(), sink or blocks.vector_sink_c()
    top.connect(block, blocks.head(item, count), sink)
    top.run()
    return np.array(sink.data())


def strongest_hz(samples, rate_hz):
    spectrum = np.abs(np.fft.fft(samples * np.hanning(len(samples))))
    return np.fft.fftfreq(len(samples), 1 / rate_hz)[np.argmax(spectrum)]


def tone():
    rate_hz, count = 1e6, 1 << 16
    for frequency_hz in [433.9e6, 433.7e6, 434.1e6]:
        block = source({"radio": "emulated"}, "fc32", rate_hz, frequency_hz=frequency_hz)
        at_hz = strongest_hz(received(block, 4 * count)[-count:], rate_hz)
        assert abs(at_hz + frequency_hz - STATION_HZ) < 100, (at_hz, frequency_hz)
    # A retune of one that runs.
    top, sink = gr.top_block(), blocks.vector_sink_c()
    block = source({"radio": "emulated"}, "fc32", rate_hz, frequency_hz=433.9e6)
    top.connect(block, sink)
    top.start()
    time.sleep(0.5)
    block.set_frequency(0, 433.7e6)
    time.sleep(0.5)
    top.stop()
    top.wait()
    samples = np.array(sink.data())
    found = [strongest_hz(part, rate_hz) for part in (samples[:count], samples[-count:])]
    assert abs(found[0] - 20e3) < 100 and abs(found[1] - 220e3) < 100, found
    print(f"tone: {found[0] / 1e3:.2f} kHz above the middle, and {found[1] / 1e3:.2f} kHz after the retune")


def zeros():
    count = 600_000
    args = {key: value for key, value in RAMP.items() if key != "driver"}
    args["fault"] = f"lose to_host data skip=50 every=200 count={LOST}"
    block = source(args, "fc32", 1e6, f"gaps=zeros,spp={PACKET}")
    samples = received(block, count)
    low, high = (np.rint(part * 32767).astype(np.int64) & 0xFFFF for part in (samples.real, samples.imag))
    ticks = high << 16 | low
    missing = ticks == 0
    assert np.array_equal(ticks[~missing], (ticks[0] + np.arange(count))[~missing])
    assert np.count_nonzero(missing) == LOST * PACKET, np.count_nonzero(missing)
    print(f"zeros: {count} samples at their times, {LOST * PACKET} of them zeros for {LOST} lost packets")


def send():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sent.sc16")
        count, rate_hz = 200_000, 1e6
        wave = (0.5 * np.exp(2j * np.pi * 0.05 * np.arange(count))).astype(np.complex64)
        sink = soapy.sink("driver=millstream", "fc32", 1, f"radio=emulated,antenna=ramp,tx_out={path}", "", [""], [""])
        sink.set_sample_rate(0, rate_hz)
        top = gr.top_block()
        top.connect(blocks.vector_source_c(wave), sink)
        top.run()
        # The radio completes its file when its client has gone.
        del top, sink
        deadline = time.monotonic() + 10
        while not os.path.exists(path) and time.monotonic() < deadline:
            time.sleep(0.1)
        sent = np.fromfile(path, "<i2").reshape(-1, 2)
        kept = sent[np.any(sent != 0, axis=1)]
        want = np.stack([wave.real, wave.imag], 1)
        want = np.rint(want * 32767).astype(np.int64)
        assert len(kept) == count and np.max(np.abs(kept - want)) <= 1, (len(kept), count)
        print(f"send: {count} samples as they were given")


tone()
zeros()
send()
