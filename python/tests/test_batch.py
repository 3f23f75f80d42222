"""Batches by Ray and Dask: the same tasks and results as those of the command itself."""

import json
import os
from pathlib import Path

import pytest

from millstream import batch

ROOT = Path(__file__).parents[2]
PROGRAM = os.environ.get("MILLSTREAM", str(ROOT / "target/debug/millstream"))

needs_program = pytest.mark.skipif(not Path(PROGRAM).exists(), reason=f"no {PROGRAM}: run cargo build")


@pytest.fixture
def manifest(tmp_path):
    """Three tasks; one of them fails, as its recording is truncated."""
    for number, size in enumerate([800_000, 800_000, 801]):
        (tmp_path / f"r{number}.cf32").write_bytes(bytes(size))
    path = tmp_path / "b.toml"
    path.write_text(
        f'graph = "{ROOT}/graphs/spectrum.toml"\nrecordings = ["r*.cf32"]\n[outputs]\nout = "rows.f32"\n'
    )
    return path


def check(manifest, run):
    """Runs twice: everything, then only what failed."""
    first = run()
    assert first.done == 2 and first.busy == 0
    (reason,) = first.failed.values()
    assert reason.endswith("the file is not complete, or it is not a cf32 file")
    results = [json.loads(path.read_text()) for path in manifest.parent.glob("b.results/done/*/result.json")]
    assert sorted(result["task"]["recording"] for result in results) == ["r0.cf32", "r1.cf32"]
    again = run()
    assert again.done == 0 and again.failed == first.failed


@needs_program
def test_tasks_of_a_manifest_run_one_by_one(manifest):
    names = batch.open_tasks(manifest, PROGRAM)
    outcomes = [batch.run_task(str(manifest), name, 1, PROGRAM) for name in names]
    assert sorted(outcome.state for outcome in outcomes) == ["done", "done", "failed"]
    assert batch.open_tasks(manifest, PROGRAM) == [outcome.task for outcome in outcomes if outcome.reason]


@needs_program
def test_what_is_wrong_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="cannot read .*none.toml: No such file"):
        batch.open_tasks(tmp_path / "none.toml", PROGRAM)
    with pytest.raises(RuntimeError, match="cannot run /none: install it on every node"):
        batch.open_tasks("none.toml", "/none")


class FakeFuture:
    """A future of Dask or a reference of Ray, whose worker may be gone."""

    def __init__(self, run, name):
        self.run, self.name = run, name

    def result(self):
        if self.name == "b":
            raise RuntimeError("about the worker\nit was killed")
        return self.run("b.toml", self.name)


class FakeEngine:
    """What is used of both engines."""

    def submit(self, run, _path, name, *_arguments, pure):
        assert not pure
        return FakeFuture(run, name)

    def as_completed(self, futures):
        return list(futures)

    def is_initialized(self):
        return True

    def remote(self, **_options):
        def of(run):
            def call(_path, name, *_arguments):
                return FakeFuture(run, name)

            call.remote = call
            return call

        return of

    def wait(self, futures):
        return futures[:1], futures[1:]

    def get(self, future):
        return future.result()


@pytest.mark.parametrize("engine", ["ray", "dask"])
def test_a_lost_worker_costs_its_task_and_a_busy_task_is_tried_again(monkeypatch, engine):
    tries, left, pauses = [], ["a", "b", "c"], []

    def run_task(_manifest, name):
        tries.append(name)
        if name == "c" and tries.count("c") < 3:
            return batch.Outcome(name, "busy")
        left.remove(name)
        return batch.Outcome(name, "done")

    monkeypatch.setattr(batch, "run_task", run_task)
    monkeypatch.setattr(batch, "open_tasks", lambda *_arguments: list(left))
    monkeypatch.setattr(batch.time, "sleep", pauses.append)
    fake = FakeEngine()
    monkeypatch.setattr(batch, "_engine", lambda _name: fake)
    summary = batch.run_ray("b.toml") if engine == "ray" else batch.run_dask("b.toml", fake)
    assert (summary.done, summary.busy) == (2, 0)
    assert summary.failed == {"b": "RuntimeError: it was killed"}
    assert pauses == [1, 2], "before the second and the third try"


def test_a_task_that_stays_busy_is_counted(monkeypatch):
    monkeypatch.setattr(batch, "open_tasks", lambda *_arguments: ["a"])
    monkeypatch.setattr(batch.time, "sleep", lambda _seconds: None)
    summary = batch._all_rounds("b.toml", "", lambda names: [batch.Outcome(name, "busy") for name in names])
    assert summary == batch.Summary(busy=1)


def test_a_signal_is_told(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    outcome = batch.run_task("b.toml", "a", 1, str(program))
    assert outcome == batch.Outcome("a", "failed", "its process was killed by signal 9")


@needs_program
def test_dask_runs_the_tasks(manifest):
    distributed = pytest.importorskip("distributed", reason="no Dask (pip install distributed)")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        check(manifest, lambda: batch.run_dask(manifest, client, program=PROGRAM))


@needs_program
def test_ray_runs_the_tasks(manifest):
    ray = pytest.importorskip("ray", reason="no Ray (pip install ray)")
    try:
        check(
            manifest,
            lambda: batch.run_ray(manifest, program=PROGRAM, num_cpus=2, include_dashboard=False),
        )
    finally:
        ray.shutdown()
