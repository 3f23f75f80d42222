"""Runs a flowgraph with a block in Python, without a radio. `make python` does so with a wheel for another processor: QEMU's
user-mode emulation lacks options of sockets that radios need."""

import tempfile
from pathlib import Path

import numpy as np

import millstream

GRAPH = """
[[block]]
name = "tone"
type = "signal_source"
frequency_hz = 1e5
rate_hz = 1e6

[[block]]
name = "some"
type = "head"
count = 100000

[[block]]
name = "double"
type = "python"
function = "double"

[[block]]
name = "sink"
type = "file_sink"
item = "cf32"
path = "doubled.cf32"

[graph]
connections = ["tone -> some -> double -> sink"]
"""

with tempfile.TemporaryDirectory() as folder:
    graph = Path(folder, "double.toml")
    graph.write_text(GRAPH.replace("doubled.cf32", f"{folder}/doubled.cf32"), "utf-8")
    millstream.run_graph(graph, blocks={"double": lambda samples: 2 * samples})
    samples = np.fromfile(f"{folder}/doubled.cf32", np.complex64)

# A tenth of a turn from sample to sample.
turns = np.angle(samples[1:] * samples[:-1].conj()) / (2 * np.pi)
assert len(samples) == 100_000 and np.allclose(turns, 0.1, atol=1e-4), (len(samples), turns)
print(f"millstream {millstream.__version__}: {len(samples)} samples through a graph, level {abs(samples).mean():.2f}")
