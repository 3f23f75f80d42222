"""Flowgraphs from files, also with blocks that are functions."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import millstream

ROOT = Path(__file__).parents[2]

FILTERED = """
[parameters]
in = { help = "samples" }
out = { help = "result" }

[[block]]
name = "source"
type = "file_source"
path = "${in}"

[[block]]
name = "own"
type = "python"
function = "own"

[[block]]
name = "sink"
type = "file_sink"
item = "cf32"
path = "${out}"

[graph]
connections = ["source -> own -> sink"]
"""

ENDLESS = """
[[block]]
name = "noise"
type = "noise_source"

[[block]]
name = "sink"
type = "null_sink"
item = "cf32"

[graph]
connections = ["noise -> sink"]
"""


def test_a_graph_file_runs_with_parameters(tmp_path):
    rows = tmp_path / "rows.f32"
    report = millstream.run_graph(ROOT / "examples/tone-spectrum.toml", {"out": rows})
    spectrum = np.fromfile(rows, np.float32).reshape(-1, 1024)
    assert len(spectrum) > 10 and report.elapsed_s > 0 and not report.stopped
    assert report.blocks["second"]["items_out"] == 1_000_000
    # 100 kHz of 1 MHz, half of full scale.
    level = spectrum.mean(0)
    at = level.argmax()
    frequency = (at - 512) / 1024 * 1e6 if at >= 512 else at / 1024 * 1e6
    assert min(abs(frequency - 100e3), abs(at / 1024 * 1e6 - 600e3)) < 1000
    assert abs(level.max() + 6) < 2


def test_television_is_received(tmp_path):
    """The transmitter's graph makes a channel, the receiver's graph decodes it."""
    channel, stream = tmp_path / "tv.sc16", tmp_path / "tv.ts"
    source = ROOT / "target/debug/millstream"
    program = os.environ.get("MILLSTREAM", source)
    if not os.access(program, os.X_OK):
        pytest.skip(f"no {program}, which makes the channel (cargo build)")
    import subprocess

    command = [program, "sim", "generate", "--out", channel, "--duration", "0.5", "--cn", "25"]
    subprocess.run(command, check=True, capture_output=True)
    report = millstream.run_graph(
        ROOT / "graphs/atsc-rx.toml", {"in": channel, "out": stream}
    )
    signal, = report.signals
    assert signal["packets"] > 1000 and signal["uncorrected_packets"] == 0
    data = stream.read_bytes()
    assert len(data) % 188 == 0 and set(data[::188]) == {0x47}


def test_a_block_can_be_a_function(tmp_path):
    graph, source, result = tmp_path / "own.toml", tmp_path / "in.cf32", tmp_path / "out.cf32"
    graph.write_text(FILTERED, encoding="utf-8")
    rng = np.random.default_rng(3)
    samples = (rng.normal(size=200_001) + 1j * rng.normal(size=200_001)).astype(np.complex64)
    samples.tofile(source)
    calls = []

    def own(block):
        assert block.dtype == np.complex64 and block.ndim == 1
        calls.append(len(block))
        return block[block.real > 0] * 2

    millstream.run_graph(graph, {"in": source, "out": result}, blocks={"own": own})
    assert sum(calls) == len(samples)
    assert np.array_equal(np.fromfile(result, np.complex64), samples[samples.real > 0] * 2)


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (lambda block: 1 / 0, "ZeroDivisionError"),
        (lambda block: block.reshape(1, -1), "return one of one dimension"),
        (lambda block: "no array", "ValueError|TypeError"),
    ],
)
def test_an_error_in_a_function_ends_the_graph(tmp_path, own, text):
    graph, source = tmp_path / "own.toml", tmp_path / "in.cf32"
    graph.write_text(FILTERED, encoding="utf-8")
    np.zeros(1000, np.complex64).tofile(source)
    with pytest.raises(millstream.GraphError, match=text) as caught:
        millstream.run_graph(
            graph, {"in": source, "out": tmp_path / "out.cf32"}, blocks={"own": own}
        )
    assert "block `own`" in str(caught.value)


def test_wrong_graphs_say_what_is_wrong(tmp_path):
    graph = tmp_path / "own.toml"
    graph.write_text(FILTERED, encoding="utf-8")
    source = tmp_path / "in.cf32"
    np.zeros(10, np.complex64).tofile(source)
    given = {"in": source, "out": tmp_path / "out.cf32"}
    for path, parameters, blocks, text in [
        (tmp_path / "none.toml", {}, None, "none.toml"),
        (graph, given, None, "python"),
        (graph, given, {"other": lambda x: x}, 'no function "own".*other'),
        (ROOT / "examples/tone-spectrum.toml", {"nonsense": 1}, None, "nonsense"),
        (ROOT / "examples/tone-spectrum.toml", {}, None, "out"),
    ]:
        with pytest.raises(millstream.GraphError, match=text):
            millstream.run_graph(path, parameters, blocks=blocks)


def test_a_timeout_stops_a_graph(tmp_path):
    graph = tmp_path / "endless.toml"
    graph.write_text(ENDLESS, encoding="utf-8")
    began = time.monotonic()
    report = millstream.run_graph(graph, timeout=0.3)
    assert report.stopped and time.monotonic() - began < 5
    assert report.blocks["sink"]["items_in"] > 0


def test_a_signal_stops_a_graph(tmp_path):
    graph = tmp_path / "endless.toml"
    graph.write_text(ENDLESS, encoding="utf-8")

    def alarm(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            millstream.run_graph(graph)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_graph_receives_from_an_emulated_radio(tmp_path):
    graph, out = tmp_path / "rx.toml", tmp_path / "out.cf32"
    graph.write_text(
        """
[parameters]
args = { help = "radio" }
out = { help = "file" }

[[block]]
name = "radio"
type = "radio_rx"
args = "${args}"
rate_hz = 1e6
samples = 100000

[[block]]
name = "sink"
type = "file_sink"
item = "cf32"
path = "${out}"

[graph]
connections = ["radio -> sink"]
""",
        encoding="utf-8",
    )
    with millstream.EmulatedRadio(["tone:100e3,0.5"], device="e320-radio") as emulated:
        report = millstream.run_graph(graph, {"args": emulated.args, "out": out})
    samples = np.fromfile(out, np.complex64)
    metrics = report.blocks["radio"]["metrics"]
    assert len(samples) == metrics["delivered"] and metrics["expected"] == 100_000
    assert abs(np.abs(samples).mean() - 0.5) < 1e-3
