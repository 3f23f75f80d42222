#!/usr/bin/env python3
"""Peers: Ray and Dask. A manifest of 200 tasks runs by worker processes of `batch run`, on a Ray cluster and on a Dask
cluster, both on this machine only: every file of every result is the same, bit by bit. MILLSTREAM_TASKS gives another
number of tasks. Exit status: 0 they are, 1 they are not, 77 skipped (neither is installed)."""

import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import common

SETTINGS = ["0.5", "0.25"]


def installed(name):
    return importlib.util.find_spec(name) is not None


def make(folder, tasks):
    """Recordings of different contents, and a manifest that runs each with every setting."""
    folder.mkdir()
    recordings = -(-tasks // len(SETTINGS))
    for number in range(recordings):
        block = hashlib.sha256(str(number).encode()).digest()
        (folder / f"r{number:04}.sc16").write_bytes(block * 1250)
    (folder / "scale.toml").write_text(
        '[parameters]\nin = { help = "recording" }\nout = { help = "its samples, scaled" }\nfactor = 1.0\n'
        '[[block]]\nname = "source"\ntype = "file_source"\npath = "${in}"\n'
        '[[block]]\nname = "scale"\ntype = "multiply_const"\nfactor = "${factor}"\n'
        '[[block]]\nname = "sink"\ntype = "file_sink"\nitem = "cf32"\npath = "${out}"\n'
        '[graph]\nconnections = ["source -> scale -> sink"]\n'
    )
    manifest = folder / "b.toml"
    manifest.write_text(
        'graph = "scale.toml"\nrecordings = ["r*.sc16"]\n[outputs]\nout = "scaled.cf32"\n'
        f"[sweep]\nfactor = [{', '.join(SETTINGS)}]\n"
    )
    return manifest, recordings * len(SETTINGS)


def sums(manifest):
    """The hash of every result's file, by task."""
    files = sorted(manifest.parent.glob("b.results/done/*/scaled.cf32"))
    return {file.parent.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def copy(manifest, name):
    """The same recordings, with the times by which they are known, in a folder without results."""
    folder = manifest.parent.parent / name
    shutil.copytree(manifest.parent, folder, ignore=shutil.ignore_patterns("b.results"))
    return folder / manifest.name


def on_ray(batch, manifest):
    import ray

    options = {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False, "_node_ip_address": "127.0.0.1"}
    try:
        return batch.run_ray(manifest, program=common.MILLSTREAM, **options), f"Ray {ray.__version__}"
    finally:
        ray.shutdown()


def on_dask(batch, manifest):
    import distributed

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        summary = batch.run_dask(manifest, client, program=common.MILLSTREAM)
        return summary, f"Dask {distributed.__version__}"


def main():
    engines = [("ray", "ray", on_ray), ("dask", "distributed", on_dask)]
    engines = [(name, run) for name, module, run in engines if installed(module)]
    if not engines:
        common.skip("neither Ray nor Dask (pip install ray distributed)")
    if not os.access(common.MILLSTREAM, os.X_OK):
        common.skip(f"no {common.MILLSTREAM} (run make build)")
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work).resolve()
        # Only the module of batches: the others need the compiled part. Workers inherit the path.
        package = work / "python/millstream"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        shutil.copy(pathlib.Path(common.ROOT, "python/package/millstream/batch.py"), package)
        os.environ["PYTHONPATH"] = str(package.parent)
        sys.path.insert(0, str(package.parent))
        from millstream import batch

        manifest, tasks = make(work / "local", int(os.environ.get("MILLSTREAM_TASKS", "200")))
        others = {name: copy(manifest, name) for name, _ in engines}
        began = time.monotonic()
        subprocess.run([common.MILLSTREAM, "batch", "run", manifest], check=True, stdout=subprocess.DEVNULL)
        print(f"batch run: {tasks} tasks in {time.monotonic() - began:.1f} s")
        expected = sums(manifest)
        if len(expected) != tasks or len(set(expected.values())) != tasks:
            sys.exit(f"{len(expected)} results of {tasks} tasks, {len(set(expected.values()))} different")
        for name, run in engines:
            began = time.monotonic()
            summary, version = run(batch, others[name])
            seconds = time.monotonic() - began
            if summary.done != tasks or summary.failed or summary.busy:
                sys.exit(f"{version}: {summary}")
            if sums(others[name]) != expected:
                sys.exit(f"{version}: the results are others than those of `batch run`")
            print(f"agrees: {version}: {tasks} tasks in {seconds:.1f} s, every file the same bit by bit")


if __name__ == "__main__":
    main()
