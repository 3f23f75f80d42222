#!/usr/bin/python3
"""Blocks of ours against GNU Radio's: the same input, the same parameters, the same output but for rounding.

Each case is a graph file for `millstream run` and GNU Radio blocks; both read one file of noise. They have to give as many
items (but for a few that one side holds back at the end), and the largest difference must stay below a bound of the
output's root mean square. Exit status: 0 agree, 1 do not, 77 skipped.
"""

import os
import subprocess
import sys
import tempfile

from common import MILLSTREAM, skip

try:
    import numpy
    from gnuradio import analog, blocks, fft, filter as gr_filter, gr
    from gnuradio.filter import firdes
except ImportError as error:
    skip(f"no GNU Radio ({error}; Debian package gnuradio)")

ITEMS = 200_000
TAPS = [0.1, -0.25, 0.6, 1.0, 0.6, -0.25, 0.1, 0.03, -0.01]
TAPS_IM = [0.0, 0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.02, 0.05]
SIZE = {"cf32": gr.sizeof_gr_complex, "f32": gr.sizeof_float}
KIND = {"cf32": numpy.complex64, "f32": numpy.float32}
# Items that a side may hold back at the end.
SPARE = 64
# GNU Radio's resampler begins some items later in its filter.
LAGS = range(-8, 9)


def listed(values):
    """A list as TOML."""
    return "[" + ", ".join(repr(float(value)) for value in values) + "]"


def fft_chain():
    """Frames of 256 through a transform."""
    return [blocks.stream_to_vector(gr.sizeof_gr_complex, 256), fft.fft_vcc(256, True, [], False, 1),
            blocks.vector_to_stream(gr.sizeof_gr_complex, 256)]


# Name, our block, types of items in and out, GNU Radio's blocks, bound on the difference.
CASES = [
    ("fir", f'type = "fir"\ntaps = {listed(TAPS)}', "cf32", "cf32", lambda: [gr_filter.fir_filter_ccf(1, TAPS)], 1e-5),
    ("fir, floats", f'type = "fir"\nitem = "f32"\ntaps = {listed(TAPS)}', "f32", "f32",
     lambda: [gr_filter.fir_filter_fff(1, TAPS)], 1e-5),
    ("fir, decimating", f'type = "fir"\ndecimation = 5\ntaps = {listed(TAPS)}', "cf32", "cf32",
     lambda: [gr_filter.fir_filter_ccf(5, TAPS)], 1e-5),
    ("fir, complex taps", f'type = "fir"\ntaps = {listed(TAPS)}\ntaps_im = {listed(TAPS_IM)}', "cf32", "cf32",
     lambda: [gr_filter.fir_filter_ccc(1, [complex(a, b) for a, b in zip(TAPS, TAPS_IM)])], 1e-5),
    ("root raised cosine", 'type = "fir"\ndesign = "root_raised_cosine"\nrate_hz = 4\nsymbol_rate_hz = 1\nlength = 45',
     "cf32", "cf32", lambda: [gr_filter.fir_filter_ccf(1, firdes.root_raised_cosine(1, 4, 1, 0.35, 45))], 1e-4),
    ("rational_resampler", f'type = "rational_resampler"\ninterpolation = 3\ndecimation = 2\ntaps = {listed(TAPS)}',
     "cf32", "cf32", lambda: [gr_filter.rational_resampler_ccf(3, 2, TAPS)], 1e-5),
    ("rotator", 'type = "rotator"\nshift_hz = 12345\nrate_hz = 1e6', "cf32", "cf32",
     lambda: [blocks.rotator_cc(2 * numpy.pi * 12345 / 1e6)], 2e-2),
    ("quadrature_demod", 'type = "quadrature_demod"\ngain = 0.5', "cf32", "f32",
     lambda: [analog.quadrature_demod_cf(0.5)], 2e-3),
    ("agc", 'type = "agc"\nreference = 0.5\nspeed = 1e-3\ngain_max = 100', "cf32", "cf32",
     lambda: [analog.agc_cc(1e-3, 0.5, 1.0)], 1e-4),
    ("single_pole", 'type = "single_pole"\nalpha = 0.05', "f32", "f32",
     lambda: [gr_filter.single_pole_iir_filter_ff(0.05)], 1e-4),
    ("deemphasis", 'type = "deemphasis"\nrate_hz = 240e3\ntau_us = 75', "f32", "f32",
     lambda: [analog.fm_deemph(240e3, 75e-6)], 1e-4),
    ("fft", 'type = "fft"\nsize = 256\nwindow = "rectangular"', "cf32", "cf32", fft_chain, 1e-5),
    ("multiply_const", 'type = "multiply_const"\nfactor = -1.7', "cf32", "cf32",
     lambda: [blocks.multiply_const_cc(-1.7)], 1e-6),
]


def ours(folder, block, item_in, item_out, items):
    """What our block makes of `items`."""
    paths = {name: os.path.join(folder, f"{name}.bin") for name in ("in", "out")}
    items.tofile(paths["in"])
    source = 'type = "file_source"\nformat = "cf32"'
    floats = ""
    chain = "source -> block -> sink"
    if item_in == "f32":
        # A file source reads complex samples: the floats are their real parts.
        items.astype(numpy.complex64).tofile(paths["in"])
        floats = '[[block]]\nname = "parts"\ntype = "complex_to_floats"\n'
        chain = "source -> parts.in\", \"parts.re -> block -> sink"
    text = (f'[[block]]\nname = "source"\n{source}\npath = "{paths["in"]}"\n{floats}'
            f'[[block]]\nname = "block"\n{block}\n'
            f'[[block]]\nname = "sink"\ntype = "file_sink"\nitem = "{item_out}"\npath = "{paths["out"]}"\n'
            f'[graph]\nconnections = ["{chain}"]\n')
    graph = os.path.join(folder, "graph.toml")
    with open(graph, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([MILLSTREAM, "run", "--force", "--no-stored-plan", graph], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"millstream run failed:\n{done.stdout}\n{text}")
    return numpy.fromfile(paths["out"], KIND[item_out])


def theirs(made, item_in, item_out, items):
    """What GNU Radio's blocks make of them."""
    top = gr.top_block()
    source = {"cf32": blocks.vector_source_c, "f32": blocks.vector_source_f}[item_in](items.tolist())
    sink = {"cf32": blocks.vector_sink_c, "f32": blocks.vector_sink_f}[item_out]()
    top.connect(source, *made, sink)
    top.run()
    return numpy.array(sink.data(), KIND[item_out])


def apart(one, other):
    """The largest difference of two streams as far as both go."""
    count = min(len(one), len(other))
    return numpy.abs(one[:count] - other[:count]).max() if count else numpy.inf


def main():
    """All cases."""
    if not os.access(MILLSTREAM, os.X_OK):
        skip(f"no {MILLSTREAM} (run make build)")
    random = numpy.random.default_rng(1)
    noise = {"f32": random.standard_normal(ITEMS).astype(numpy.float32)}
    noise["cf32"] = (noise["f32"] + 1j * random.standard_normal(ITEMS)).astype(numpy.complex64)
    wrong = 0
    for name, block, item_in, item_out, make, bound in CASES:
        with tempfile.TemporaryDirectory() as folder:
            got = ours(folder, block, item_in, item_out, noise[item_in])
        expected = theirs(make(), item_in, item_out, noise[item_in])
        level = numpy.sqrt(numpy.mean(numpy.abs(expected) ** 2))
        lags = LAGS if name == "rational_resampler" else [0]
        difference = min(apart(got[max(lag, 0):], expected[max(-lag, 0):]) for lag in lags) / level
        agrees = abs(len(got) - len(expected)) <= SPARE and difference < bound
        wrong += not agrees
        print(f"{name:20} {len(got):7} items, {len(expected):7} of GNU Radio's; largest difference {difference:.1e} of the "
              f"root mean square{'' if agrees else ': TOO MUCH'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
