#!/usr/bin/env python3
"""Peer: SciPy. What `lab compare` says of two and three sets of made-up starts, beside the same worked out by SciPy:
p by all ways to deal the starts out (Brunner and Munzel's statistic), Holm's correction, the ratio by Hodges and
Lehmann, and the interval of a median by the binomial distribution."""

import itertools
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import warnings

import common

try:
    import numpy
    import scipy
    from scipy import stats
except ImportError:
    common.skip("no SciPy (Debian package python3-scipy)")

STARTS = 6
SERIES = ["one", "two"]
FACTORS = {"base": 1.0, "alike": 1.0, "slow": 1.6}


def record(template, variant, side, series, restart, value_ns):
    """A record that holds one latency many times over: its median and its 99th percentile are that."""
    line = json.loads(json.dumps(template))
    line.update(run="made up", variant=variant, side=side, name="timer", load="idle", restart=restart, sample=0)
    observed = {"histogram": {"min_ns": value_ns, "max_ns": value_ns, "classes_ns": [[value_ns, 100]]}}
    line["measured"].update(series=series, observed=observed)
    return line


def template(program):
    """A record as millstream writes it, with the machine's own description."""
    found = subprocess.run([program, "--json", "latency", "timer", "--cpus", "0", "--class", "other", "--count", "10"],
                           capture_output=True, text=True, check=True)
    document = json.loads(found.stdout)
    return {"format": 1, "command": [], "measured": document["results"]["records"][0],
            "environment": document["environment"]}


def size(one, other):
    """Brunner and Munzel's statistic, without its sign."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return abs(stats.brunnermunzel(one, other).statistic)


def chance(one, other):
    """The share of all ways to deal the starts out that are as far off."""
    together = numpy.concatenate([one, other])
    seen, as_far, every = size(one, other), 0, 0
    for chosen in itertools.combinations(range(len(together)), len(one)):
        mask = numpy.zeros(len(together), bool)
        mask[list(chosen)] = True
        every += 1
        as_far += size(together[mask], together[~mask]) >= seen * (1 - 1e-12)
    return as_far / every


def holm(values):
    """Holm's correction (false_discovery_control has none; this is R's p.adjust in four lines)."""
    order, largest, found = sorted(range(len(values)), key=values.__getitem__), 0.0, [0.0] * len(values)
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, values[index] * (len(values) - rank)))
        found[index] = largest
    return found


def median_interval(values, level=0.95):
    """Hettmansperger and Sheather's, on logarithms."""
    logs, n = sorted(math.log(value) for value in values), len(values)
    holds = [1 - 2 * stats.binom.cdf(k - 1, n, 0.5) for k in range(n // 2 + 1)]
    outer = max(k for k in range(1, n // 2 + 1) if holds[k] >= level)
    share = (holds[outer] - level) / (holds[outer] - holds[outer + 1])
    inwards = (n - outer) * share / (outer + (n - 2 * outer) * share)
    low = logs[outer - 1] + (logs[outer] - logs[outer - 1]) * inwards
    high = logs[n - outer] - (logs[n - outer] - logs[n - outer - 1]) * inwards
    return math.exp(low), math.exp(high)


def close(ours, theirs):
    """Whether figures agree but for rounding."""
    return math.isclose(ours, theirs, rel_tol=1e-9)


def main():
    """Compares and ends with status 1 when anything differs."""
    program = common.LABORATORY
    generator = random.Random(7)
    made = template(program)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "made.jsonl"
        values, lines = {}, []
        for series in SERIES:
            for side, (variant, factor) in enumerate(FACTORS.items()):
                starts = [round(20000 * factor * math.exp(generator.gauss(0, 0.15))) for _ in range(STARTS)]
                values[series, variant] = starts
                lines += [record(made, variant, side, series, restart, value) for restart, value in enumerate(starts)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = subprocess.run([program, "--json", "lab", "compare", str(path)], capture_output=True, text=True, check=True)
    figures = json.loads(found.stdout)["results"]["figures"]
    tests = [(series, figure, variant) for series in SERIES for figure in ("p50", "p99") for variant in list(FACTORS)[1:]]
    adjusted = dict(zip(tests, holm([chance(values[series, "base"], values[series, variant]) for series, _, variant in tests])))
    wrong, compared = [], 0

    def check(what, ours, theirs):
        nonlocal compared
        compared += 1
        if not close(ours, theirs):
            wrong.append(f"{what}: {ours}, and {theirs} by SciPy")

    for comparison in figures:
        series = comparison["title"].split(", ")[1].split(" |")[0]
        changes = {change["at"]: change["p"] for change in comparison["changes"]}
        for index, side in enumerate(comparison["sides"]):
            name = f"{comparison['title']}, {comparison['figure']}, {side['label']}"
            own, base = values[series, side["label"]], values[series, "base"]
            check(f"{name}: median", side["figure_ns"], statistics.median(own))
            for ours, theirs in zip(side["interval_ns"], median_interval(own)):
                check(f"{name}: interval", ours, theirs)
            if index == 0:
                continue
            ratios = [math.log(one / other) for one in own for other in base]
            check(f"{name}: ratio", side["ratio"]["estimate"], math.exp(statistics.median(ratios)))
            p = adjusted[series, comparison["figure"], side["label"]]
            if (p <= 0.05) != (index in changes):
                wrong.append(f"{name}: {'a' if index in changes else 'no'} change, and p {p} by SciPy")
            elif index in changes:
                check(f"{name}: p", changes[index], p)
    print("\n".join(wrong) or f"SciPy {scipy.__version__} agrees with {compared} figures")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
