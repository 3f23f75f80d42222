"""Shared by the peers that run batches on other engines: a manifest of 200 tasks over drawn recordings of television
channels, whose sent packets are known. MILLSTREAM_TASKS gives another number of tasks, MILLSTREAM_SEED another draw."""

import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import common

# Noise by carrier offset, for every recording.
SETTINGS = [f"noise = {[0.0, 0.005, 0.01, 0.02, 0.04]}", f"offset = {[-20e3, 15e3]}"]
SETTINGS_COUNT = 10
FIGURES = ["equalizer.mer_db", "demod.pilot_offset_hz", "reed_solomon.corrected_bytes"]
TASKS = int(os.environ.get("MILLSTREAM_TASKS", "200"))
PACKET_BYTES = 188
# The sync byte is followed by the transport error indicator.
TRANSPORT_ERROR = 0x80


def make(folder, draw):
    """Draws recordings and their sent packets, one truncated recording, and a manifest that runs each with every
    setting; returns the manifest and how many tasks can succeed."""
    recordings = -(-TASKS // SETTINGS_COUNT)
    (folder / "sent").mkdir(parents=True)
    for number in range(recordings):
        options = {
            "cn": draw.uniform(18, 32),
            "offset": draw.uniform(-20e3, 20e3),
            "clock-ppm": draw.uniform(-8, 8),
            "level": draw.uniform(0.05, 0.25),
        }
        words = [f"--{name}={value:.3f}" for name, value in options.items()]
        echo = f"--echo={draw.uniform(0.2, 8):.2f}us:{draw.uniform(-25, -12):.1f}dB:{draw.uniform(0, 360):.0f}deg"
        files = [f"--out={folder}/tv-{number:03}.sc16", f"--sent={folder}/sent/tv-{number:03}.ts"]
        command = [common.MILLSTREAM, "sim", "generate", "--duration=0.25", f"--seed={draw.randrange(1, 2**31)}"]
        made = subprocess.run([*command, *words, echo, *files], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            sys.exit(f"sim generate: {made.stderr}")
    whole = (folder / "tv-000.sc16").read_bytes()
    (folder / "tv-truncated.sc16").write_bytes(whole[: len(whole) // 2 + 1])
    shutil.copytree(pathlib.Path(common.ROOT, "examples"), folder / "examples")
    manifest = folder / "b.toml"
    outputs = '[outputs]\nout = "tv.ts"\n'
    sweep = "[sweep]\n" + "\n".join(SETTINGS) + "\n"
    manifest.write_text(f'graph = "examples/noisy-reception.toml"\nrecordings = ["tv-*.sc16"]\n{outputs}{sweep}')
    return manifest, recordings * SETTINGS_COUNT


def copy(manifest, name):
    """The same recordings, with the times by which they are known, in a folder without results."""
    folder = manifest.parent.parent / name
    shutil.copytree(manifest.parent, folder, ignore=shutil.ignore_patterns("b.results"), copy_function=os.link)
    return folder / manifest.name


def done(manifest):
    """The folder of every result, by task."""
    return {folder.name: folder for folder in sorted(manifest.parent.glob("b.results/done/*"))}


def sums(manifest):
    """The hash of every result's stream and what the receiver measured, by task. The streams of two settings are often
    the same, their figures are not."""
    found = {}
    for name, folder in done(manifest).items():
        numbers = json.loads((folder / "result.json").read_text())["numbers"]
        stream = hashlib.sha256((folder / "tv.ts").read_bytes()).hexdigest()
        found[name] = (stream, *(numbers[figure] for figure in FIGURES))
    return found


def failed(manifest):
    """The reasons of the tasks that failed, by task, without the folder."""
    files = sorted(manifest.parent.glob("b.results/failed/*.json"))
    reasons = {file.stem: json.loads(file.read_text())["reason"] for file in files}
    return {name: reason.replace(str(manifest.parent), "") for name, reason in reasons.items()}


def packets(file):
    stream = file.read_bytes()
    return [stream[at : at + PACKET_BYTES] for at in range(0, len(stream), PACKET_BYTES)]


def check_streams(manifest):
    """Ends the peer if a result has a packet that was not sent, in another order, or too few; returns how many packets
    all results have, and how many of them are marked as uncorrectable."""
    sent = {file.stem: {packet: at for at, packet in enumerate(packets(file))}
            for file in manifest.parent.glob("sent/*.ts")}
    all_packets = marked = 0
    for name, folder in done(manifest).items():
        task = json.loads((folder / "result.json").read_text())["task"]
        places = sent[pathlib.Path(task["recording"]).stem]
        received = packets(folder / "tv.ts")
        good = [packet for packet in received if not packet[1] & TRANSPORT_ERROR]
        at = [places.get(packet, -1) for packet in good]
        if -1 in at or any(next_one <= one for one, next_one in zip(at, at[1:])):
            sys.exit(f"{name} {task}: a packet was not sent, or stands in another order")
        if float(task["parameters"]["noise"]) == 0.0 and len(good) < 0.5 * len(places):
            sys.exit(f"{name} {task}: {len(good)} of {len(places)} sent packets")
        all_packets += len(received)
        marked += len(received) - len(good)
    return all_packets, marked


def run_here(folder):
    """Makes the manifest and runs it by the local engine; returns it and the hashes of its results."""
    seed = int(os.environ.get("MILLSTREAM_SEED", "1"))
    manifest, tasks = make(folder, random.Random(seed))
    began = time.monotonic()
    ran = subprocess.run([common.MILLSTREAM, "batch", "run", manifest], capture_output=True, text=True, check=False)
    print(f"batch run: {tasks} tasks in {time.monotonic() - began:.1f} s (MILLSTREAM_SEED={seed})")
    expected = sums(manifest)
    if len(expected) != tasks or len(set(expected.values())) != tasks:
        sys.exit(f"{len(expected)} results of {tasks} tasks, {len(set(expected.values()))} different:\n{ran.stderr}")
    if ran.returncode == 0 or len(failed(manifest)) != SETTINGS_COUNT:
        sys.exit(f"{len(failed(manifest))} tasks failed, not the {SETTINGS_COUNT} of the truncated recording")
    received, marked = check_streams(manifest)
    print(f"all {received - marked} packets that could be corrected were sent, in this order ({marked} marked)")
    return manifest, expected
