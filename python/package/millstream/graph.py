"""Flowgraphs from files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._millstream import GraphError
from ._millstream import run_graph as _run_graph

#: A block written in Python: takes and returns a one-dimensional array of complex64.
BlockFunction = Callable[[npt.NDArray[np.complex64]], npt.ArrayLike]


@dataclass(frozen=True, slots=True)
class GraphReport:
    """What a graph counted until its end.

    `blocks` maps the name of each block to its counters (`items_in`, `items_out`, `busy_ns`,
    `metrics` and more), `signals` has the figures of television receivers. `stopped` says that the
    timeout ended the graph.
    """

    elapsed_s: float
    stopped: bool
    blocks: dict[str, dict[str, Any]]
    signals: list[dict[str, Any]]
    partitions: list[dict[str, Any]]


def _adapted(name: str, function: BlockFunction) -> Callable[[bytearray], npt.NDArray[np.complex64]]:
    def call(data: bytearray) -> npt.NDArray[np.complex64]:
        result = np.ascontiguousarray(function(np.frombuffer(data, np.complex64)), np.complex64)
        if result.ndim != 1:
            raise GraphError(
                f"the function {name!r} returned an array of the shape {result.shape}: return one "
                "of one dimension, of any length"
            )
        return result

    return call


def run_graph(
    path: str | os.PathLike[str],
    parameters: Mapping[str, object] | None = None,
    *,
    blocks: Mapping[str, BlockFunction] | None = None,
    timeout: float | None = None,
) -> GraphReport:
    """Runs a graph file to its end, like `millstream run`.

    `parameters` are what `--set` sets. `blocks` are functions for blocks of the type `python`, whose
    parameter `function` names one: for experiments, as each call copies the samples and takes the
    interpreter's lock. After `timeout` seconds the graph ends as after Ctrl-C: its files become
    complete. GraphError says why a graph cannot run or which block failed.
    """
    settings = [f"{name}={_text(value)}" for name, value in (parameters or {}).items()]
    adapted = {name: _adapted(name, function) for name, function in (blocks or {}).items()}
    report = json.loads(_run_graph(os.fspath(path), settings, adapted or None, timeout))
    return GraphReport(
        elapsed_s=report["elapsed_s"],
        stopped=report["stopped"],
        blocks={block["name"]: block for block in report["blocks"]},
        signals=report["signals"],
        partitions=report["partitions"],
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
