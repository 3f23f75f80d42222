#!/usr/bin/env python3
"""Peers: Ray and Dask. A manifest of 200 tasks runs by worker processes of `batch run`, on a Ray cluster and on a Dask
cluster, both on this machine only: every result is the same, bit by bit, and has the packets that were sent. The tasks
of a truncated recording fail alone. Exit status: 0 all that, 1 not, 77 skipped (neither is installed)."""

import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import time

import common
from batch_common import copy, failed, run_here, sums


def installed(name):
    return importlib.util.find_spec(name) is not None


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

        manifest, expected = run_here(work / "local")
        others = {name: copy(manifest, name) for name, _ in engines}
        bad = failed(manifest)
        for name, run in engines:
            began = time.monotonic()
            summary, version = run(batch, others[name])
            seconds = time.monotonic() - began
            if summary.done != len(expected) or len(summary.failed) != len(bad) or summary.busy:
                sys.exit(f"{version}: {summary}")
            if sums(others[name]) != expected or failed(others[name]) != bad:
                sys.exit(f"{version}: the results are others than those of `batch run`")
            print(f"agrees: {version}: {len(expected)} tasks in {seconds:.1f} s, every file the same bit by bit; "
                  f"the {len(bad)} of the truncated recording failed alone")


if __name__ == "__main__":
    main()
