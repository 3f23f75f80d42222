"""Two latency programs in turns: pairs of short runs until their medians over pairs are known well enough.

Machines that others share change from second to second, so a single long run of each compares two moments of
the machine. Each pair has both programs one after the other, in an order that alternates.
"""

import statistics
import sys

# Shares that the median and the 99th percentile may differ by: on a machine that others use, and with --measure.
LOOSE, STRICT = (0.25, 0.5), (0.0, 0.1)


def quantile(counts, share):
    """The value that `share` of all do not exceed; `counts` maps values to how often they came."""
    wanted, below = share * sum(counts.values()), 0
    for value in sorted(counts):
        below += counts[value]
        if below >= wanted:
            return value
    raise ValueError("no value")


def microseconds(histogram):
    """A histogram of ours, floored to microseconds as others count."""
    counts = {}
    for upper_ns, count in histogram["classes_ns"]:
        # The middle of the class: there are 64 in an octave.
        value = int(upper_ns * (1 - 1 / 192)) // 1000
        counts[value] = counts.get(value, 0) + count
    return counts


def known_to(values):
    """Half of the 95 % interval of a median: that of a normal one, from the median deviation."""
    middle = statistics.median(values)
    deviation = 1.4826 * statistics.median(abs(value - middle) for value in values)
    return 1.96 * 1.2533 * deviation / len(values) ** 0.5


def agree(ours, theirs, pairs_min, pairs_max, floor_us=1):
    """Whether the two agree. Each program returns (p50, p99) in microseconds.

    Pairs are added, from `pairs_min` to `pairs_max`, until the differences are known to half of what they may be,
    whatever they are: who stops when it agrees lets pass what does not. A figure may be off by `floor_us` whatever
    the share; with --measure that is all that the median may be off by.
    """
    shares = STRICT if "--measure" in sys.argv[1:] else LOOSE
    seen = []
    while True:
        order = [ours, theirs] if len(seen) % 2 == 0 else [theirs, ours]
        results = {program: program() for program in order}
        seen.append((results[ours], results[theirs]))
        middle = [[statistics.median(pair[side][figure] for pair in seen) for side in (0, 1)] for figure in (0, 1)]
        limits = [max(share * theirs_us, floor_us) for (_, theirs_us), share in zip(middle, shares)]
        known = [known_to([pair[0][figure] - pair[1][figure] for pair in seen]) for figure in (0, 1)]
        precise = all(half <= limit / 2 for half, limit in zip(known, limits))
        if len(seen) >= pairs_min and precise or len(seen) >= pairs_max:
            break
    (p50, p50_theirs), (p99, p99_theirs) = middle
    print(f"medians over {len(seen)} pairs, ours against theirs: p50 {p50:.1f} and {p50_theirs:.1f} us, "
          f"p99 {p99:.1f} and {p99_theirs:.1f} us ({p99 / p99_theirs:.3f}), "
          f"differences known to {known[0]:.1f} and {known[1]:.1f} us")
    return all(abs(a - b) <= limit for (a, b), limit in zip(middle, limits))
