#!/usr/bin/env python3
"""Peer: Valgrind's cachegrind. It runs a graph on one thread in a processor of which it models the caches, and counts the
misses. They must stay few up to the sizes that our model calculates for such caches, and be many at four times of them:

- batches of a fused chain, of which two must fit into the first cache (`flow::plan::default_batch_bytes`);
- rings between blocks, which must fit into half of the second one (`graph plan`).
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import common

# Debian's valgrind is a script that calls a program beside it, so it is called by its real name.
VALGRIND = shutil.which("valgrind")
# Items of a run, at least: so many that the misses of the program's start do not count.
ITEMS = 3_000_000
ITEM_BYTES = 8
LINE_BYTES = 64
BLOCKS = 12
# Of the predicted size.
FACTORS = [0.5, 1, 2, 4]
# Shares of the misses of a chain whose buffers never are in the cache: at most so many are few, and more than so many many.
FEW, MANY = 0.2, 0.6
# First cache, second cache, bytes. The machine of that second cache, for the planner.
CACHES = [(32 << 10, 256 << 10, "i7-6950x"), (64 << 10, 512 << 10, "ryzen-7-1700")]


def graph(folder, kind, setting):
    """Writes a chain of equal blocks from a source of zeros, without end; returns the names of its blocks."""
    blocks = [("zeros", "null_source", ""), *((f"b{n}", kind, setting) for n in range(BLOCKS)), ("nowhere", "null_sink", "")]
    names = [name for name, _, _ in blocks]
    text = "".join(f'[[block]]\nname = "{name}"\ntype = "{type}"\n{rest}\n' for name, type, rest in blocks)
    with open(os.path.join(folder, "graph.toml"), "w", encoding="utf-8") as file:
        file.write(f'{text}[graph]\nconnections = ["{" -> ".join(names)}"]\n')
    return names


def plan(folder, names, batch_bytes, inside_bytes):
    """Writes a plan with one thread for all blocks."""
    with open(os.path.join(folder, "plan.toml"), "w", encoding="utf-8") as file:
        file.write(f'[[partition]]\nname = "one"\nblocks = {json.dumps(names)}\nwait = "park"\n\n[buffers]\n'
                   f"batch_bytes = {batch_bytes}\ninside_bytes = {inside_bytes}\nhuge_pages = false\n")


def counted(folder, caches, items):
    """Runs the graph until so many items have passed, or a few more; returns them and the misses of both caches."""
    first, second, _ = caches
    out = os.path.join(folder, "cachegrind.out")
    command = [os.path.realpath(VALGRIND), "--tool=cachegrind", "--cache-sim=yes", f"--I1=32768,8,{LINE_BYTES}",
               f"--D1={first},8,{LINE_BYTES}", f"--LL={second},8,{LINE_BYTES}", f"--cachegrind-out-file={out}",
               common.MILLSTREAM, "--json", "run", "graph.toml", "--plan", "plan.toml"]
    with open(os.path.join(folder, "stdout"), "w+", encoding="utf-8") as stdout:
        running = subprocess.Popen(command, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True)
        told, asked = [], False
        for line in running.stderr:
            told.append(line)
            # The live line: seconds, and the rate since the start.
            live = re.match(r" *([\d.]+) s  zeros ([\d.]+) M/s", line)
            if not asked and live and float(live[1]) * float(live[2]) * 1e6 >= items:
                running.send_signal(signal.SIGINT)
                asked = True
        if running.wait() != 0:
            sys.exit(f"{' '.join(command)}\nended with {running.returncode}:\n{''.join(told)[-3000:]}")
        stdout.seek(0)
        passed = json.load(stdout)["results"]["run"]["blocks"][0]["items_out"]
    with open(out, encoding="utf-8") as file:
        lines = dict(re.findall(r"^(events|summary): (.*)$", file.read(), re.MULTILINE))
    count = dict(zip(lines["events"].split(), map(int, lines["summary"].split())))
    return passed, (count["D1mr"] + count["D1mw"], count["DLmr"] + count["DLmw"])


def misses(folder, caches, block, batch_bytes, inside_bytes, level):
    """Misses of a level for an item and a block."""
    names = graph(folder, *block)
    plan(folder, names, batch_bytes, inside_bytes)
    items, counts = counted(folder, caches, ITEMS)
    return counts[level] / items / (len(names) - 1)


def predicted_batch(l1_bytes):
    """`batch_of_l1` of crates/flow/src/plan/batch.rs: a third of the first cache, rounded down to a power of two."""
    return 1 << ((l1_bytes // 3).bit_length() - 1)


def predicted_ring(folder, machine, block):
    """The size of the rings that the planner calculates for one CPU of a machine."""
    graph(folder, *block)
    command = [common.MILLSTREAM, "--json", "graph", "plan", "graph.toml", "--machine", machine, "--max-cpus", "1",
               "--duration", "0.2s"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=common.LIMIT_S, check=True)
    return json.loads(done.stdout)["results"]["plan"]["buffers"]["inside_bytes"]


def border(title, predicted, measure):
    """Prints the misses of sizes around the prediction; returns what is wrong."""
    print(title)
    all_of_them = ITEM_BYTES / LINE_BYTES
    shares = {}
    for factor in FACTORS:
        size = int(predicted * factor) // 4096 * 4096
        if size == 0:
            continue
        shares[factor] = measure(size) / all_of_them
        mark = "  < predicted" if factor == 1 else ""
        print(f"  {size / 1024:6.0f} KiB  {shares[factor] * all_of_them:.4f} misses an item and block,"
              f" {shares[factor]:4.0%} of all lines{mark}", flush=True)
    for factor, share in shares.items():
        if factor <= 1 and share > FEW:
            yield f"{title}: {factor} of the predicted size has {share:.0%} misses, at most {FEW:.0%} expected"
        if factor >= 4 and share < MANY:
            yield f"{title}: {factor} times the predicted size has {share:.0%} misses, at least {MANY:.0%} expected"


def main():
    """Both borders, on the small and the large caches."""
    if VALGRIND is None:
        common.skip("no valgrind (Debian package valgrind)")
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for caches in CACHES[:1] if common.SHORT else CACHES:
            first, second, machine = caches
            # One-to-one blocks pass a batch on in two buffers.
            fused = ("multiply_const", "factor = 0.5")
            wrong += border(f"batches of a fused chain, first cache {first >> 10} KiB", predicted_batch(first),
                            lambda size: misses(folder, caches, fused, size, size, 0))
            # Others use rings, which the items go round in. Batches of a page never end in the ring's second mapping,
            # which cachegrind would take for other memory.
            apart = ("dc_offset", "in_phase = 0.1")
            wrong += border(f"rings of {BLOCKS} blocks, second cache {second >> 10} KiB",
                            predicted_ring(folder, machine, apart),
                            lambda size: misses(folder, caches, apart, 4096, size, 1))
    if wrong:
        sys.exit("\n".join(wrong))
    print("the misses rise where the model says")


main()
