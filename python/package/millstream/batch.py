"""Batches on a cluster that Ray or Dask manages: each task is `millstream batch task`, wherever the engine runs it.

    from millstream import batch

    print(batch.run_ray("sweep.toml"))                      # a Ray cluster, or this machine
    print(batch.run_dask("sweep.toml", dask_client))        # a Dask cluster

The command `millstream`, this package and the folder of the manifest must be on every node. Samples stay in files: only
the name of a task goes to a worker, and only its outcome comes back. So a task that an engine runs twice has one result.
"""

from __future__ import annotations

import functools
import importlib
import json
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Exit status of a task that another process runs.
_BUSY = 75
# Pauses between the tries of tasks that another process runs, seconds.
_PAUSES = (1, 2, 5, 10, 30, 60)


@dataclass(frozen=True)
class Outcome:
    """What became of a task."""

    task: str
    # "done", "failed", or "busy": another process runs it.
    state: str
    # Why it failed.
    reason: str = ""


@dataclass
class Summary:
    """What became of the tasks that a batch still had."""

    done: int = 0
    # Tasks that another process still ran at the last try.
    busy: int = 0
    # The reasons, by task.
    failed: dict[str, str] = field(default_factory=dict)


def open_tasks(manifest: str | Path, program: str = "millstream") -> list[str]:
    """The names of the tasks that have no result and may run now; with `[early_stop]` those of one round."""
    said = _call([program, "batch", "run", str(manifest), "--dry-run", "--json"])
    document = json.loads(said.stdout) if said.stdout else {}
    if said.returncode != 0:
        raise RuntimeError(document.get("error") or said.stderr.strip())
    names: list[str] = document["results"]["open"]
    return names


def run_task(manifest: str, name: str, threads: int = 1, program: str = "millstream") -> Outcome:
    """Runs one task in a process of its own: what an engine calls on a node."""
    said = _call([program, "batch", "task", manifest, name, "--threads", str(threads)])
    if said.returncode == 0:
        return Outcome(name, "done")
    if said.returncode == _BUSY:
        return Outcome(name, "busy")
    if said.returncode < 0:
        return Outcome(name, "failed", f"its process was killed by signal {-said.returncode}")
    lines = said.stderr.strip().splitlines()
    reason = lines[-1].removeprefix("millstream: ") if lines else f"it ended with status {said.returncode}"
    return Outcome(name, "failed", reason)


def run_ray(manifest: str | Path, *, threads: int = 1, program: str = "millstream", **init: Any) -> Summary:
    """Runs what is missing on a Ray cluster; `init` goes to `ray.init` unless Ray is connected already."""
    ray = _engine("ray")
    if not ray.is_initialized():
        ray.init(**init)
    # Ray starts a task again whose node died; a claim of the dead one has ended with it.
    remote = ray.remote(num_cpus=threads, max_retries=3)(run_task)

    def outcomes(names: list[str]) -> Iterator[Outcome]:
        path = str(Path(manifest).resolve())
        waiting = {remote.remote(path, name, threads, program): name for name in names}
        while waiting:
            ended, _ = ray.wait(list(waiting))
            for one in ended:
                yield _outcome(waiting.pop(one), functools.partial(ray.get, one))

    return _all_rounds(manifest, program, outcomes)


def run_dask(manifest: str | Path, client: Any, *, threads: int = 1, program: str = "millstream") -> Summary:
    """Runs what is missing with a `distributed.Client`. Give its workers as many threads as tasks should run at a time."""
    distributed = _engine("distributed")

    def outcomes(names: list[str]) -> Iterator[Outcome]:
        path = str(Path(manifest).resolve())
        # Not pure: whether a task has its result is not in its arguments.
        futures = {client.submit(run_task, path, name, threads, program, pure=False): name for name in names}
        for one in distributed.as_completed(futures):
            yield _outcome(futures[one], one.result)

    return _all_rounds(manifest, program, outcomes)


def _outcome(name: str, get: Callable[[], Outcome]) -> Outcome:
    """Gets the outcome of a task; an engine raises what became of its worker, and the other tasks go on."""
    try:
        return get()
    except Exception as error:
        lines = str(error).strip().splitlines()
        return Outcome(name, "failed", f"{type(error).__name__}: {lines[-1] if lines else 'its worker ended'}")


def _all_rounds(
    manifest: str | Path, program: str, outcomes: Callable[[list[str]], Iterable[Outcome]]
) -> Summary:
    """Runs rounds until none has a task that was not tried. Busy tasks are tried again after a pause."""
    summary, tried, busy, pauses = Summary(), set[str](), set[str](), iter(_PAUSES)
    while True:
        names = open_tasks(manifest, program)
        busy.intersection_update(names)
        names = [name for name in names if name not in tried]
        if not names and busy and (pause := next(pauses, None)):
            time.sleep(pause)
            tried -= busy
            continue
        if not names:
            summary.busy = len(busy)
            return summary
        tried.update(names)
        for outcome in outcomes(names):
            busy.discard(outcome.task)
            if outcome.state == "done":
                summary.done += 1
            elif outcome.state == "busy":
                busy.add(outcome.task)
            else:
                summary.failed[outcome.task] = outcome.reason


def _engine(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise RuntimeError(f"the engine is not installed: pip install {name}") from error


def _call(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise RuntimeError(
            f"cannot run {command[0]}: install it on every node, or give its path with program="
        ) from error
