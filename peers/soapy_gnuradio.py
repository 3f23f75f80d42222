#!/usr/bin/python3
"""GNU Radio's own SoapySDR blocks (gr-soapy) over our module.

  tone    a flowgraph finds the station of a scene where it should be, and elsewhere after a retune
  gaps    each of 100 gaps of drawn length is a mark on the screen and a tag, whose time tells the length exactly
  zeros   with gaps=zeros every sample stands at its own time, although packets are lost
  send    a sink transmits a burst, which the radio writes into a file

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import contextlib
import os
import sys
import tempfile
import time

from common import skip
from soapy_common import RAMP, drawn_gaps, text_of, use_module

use_module()
try:
    import numpy as np
    import pmt
    from gnuradio import blocks, gr, soapy
except ImportError as missing:
    skip(f"{missing} (Debian packages gnuradio and python3-numpy)")

STATION_HZ = 433.92e6
PACKET = 500
FAULT, GAPS = drawn_gaps(PACKET)


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


def ramp_source(stream):
    """A source of a ramp whose radio loses packets."""
    args = {key: value for key, value in RAMP.items() if key != "driver"}
    return source({**args, "fault": FAULT}, "fc32", 1e6, f"spp={PACKET},{stream}")


def ticks_of(samples):
    """The times in samples of a ramp."""
    low, high = (np.rint(part * 32767).astype(np.int64) & 0xFFFF for part in (samples.real, samples.imag))
    return high << 16 | low


@contextlib.contextmanager
def printed():
    """What the process writes to standard error, also from C++: a list, with the text at the end."""
    texts, kept = [], os.dup(2)
    with tempfile.TemporaryFile("w+") as file:
        sys.stderr.flush()
        os.dup2(file.fileno(), 2)
        try:
            yield texts
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            texts.append(file.read())


def gaps():
    """A gap is a mark on the screen and a tag with the time of the sample behind it, from which its length follows."""
    sink = blocks.vector_sink_c()
    with printed() as texts:
        ticks = ticks_of(received(ramp_source("gaps=event"), 60 * PACKET + 2 * sum(GAPS), sink=sink))
    times = {tag.offset: pmt.to_python(tag.value) for tag in sink.tags() if str(tag.key) == "rx_time"}
    offsets = sorted(times)
    tagged = [round((seconds + part) * 1e6) for seconds, part in (times[offset] for offset in offsets)]
    lengths = np.diff(tagged) - np.diff(offsets)
    # Each sample of this antenna is its own time.
    jumps = np.diff(ticks) - 1
    assert list(jumps[jumps != 0]) == GAPS, jumps[jumps != 0]
    marks = texts[0].count("sO")
    print(f"gaps: {len(GAPS)} of {min(GAPS)} to {max(GAPS)} samples; the block printed {marks} marks and gave {len(lengths)} "
          "tags with the time behind a gap")
    assert marks == len(GAPS) and list(lengths) == GAPS, (marks, lengths)
    assert list(ticks[offsets]) == tagged, "each tag is at its sample"


def zeros():
    count = 60 * PACKET + 3 * sum(GAPS)
    ticks = ticks_of(received(ramp_source("gaps=zeros"), count))
    missing = ticks == 0
    assert np.array_equal(ticks[~missing], (ticks[0] + np.arange(count))[~missing])
    assert np.count_nonzero(missing) == sum(GAPS), np.count_nonzero(missing)
    edges = np.flatnonzero(np.diff(missing))
    assert list(np.diff(edges)[::2]) == GAPS, np.diff(edges)[::2]
    print(f"zeros: {count} samples at their times, zeros for {len(GAPS)} gaps, as many as each has lost")


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
gaps()
zeros()
send()
