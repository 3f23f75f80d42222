#!/usr/bin/python3
"""Our host receives from and transmits to devices that were written without sight of it.

The devices are small Python programs (e320.py, n310.py, n320.py) that stock UHD accepts too. They are not part of
this project: the environment variable MILLSTREAM_REFERENCE_DEVICES says in which folder they are. For each, and at
every CHDR width, in every generation of UHD, and with images of another generation than the software: a tone lies
within one bin of where tuning and the DDC put it, on each channel; every sample that we transmit is accounted as
transmitted, and the device has counted as many.

These devices count packets of samples and no PINGs, other than our emulator: our host must find that out. They also
acknowledge a burst when its end arrives, with the time of the arrival. The logic of real radios gives the time of the
burst's last sample, when it has been transmitted. So where several bursts wait, our host cannot know which one such
a device means, and says so; that no sample is lost, and that the device has all of them, must hold all the same.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

from common import MILLSTREAM, PYTHON, die_with_parent, skip
from namespace import Neighbour, enter

FOLDER_VARIABLE = "MILLSTREAM_REFERENCE_DEVICES"
try:
    import numpy as np
except ImportError as missing:
    skip(f"{missing} (Debian package python3-numpy)")

ADDRESS = "127.0.0.81"
LINK_ADDRESSES = [("10.93.1.1", "10.93.1.2"), ("10.93.2.1", "10.93.2.2")]
BINS = 1 << 11
TONE_HZ = 2.400_02e9
SENT = 60_000
# Bursts with a time each, more than the 64 numbers of messages, and their distance and length in samples.
BURSTS, APART, LENGTH = 70, 2_000, 500
TUNED_HZ = 2.4e9
# Name: its channels, a rate that it has and that it can compute in time, the CHDR widths and the options to try.
# What the software and the image of a device are; the image of one generation may be behind the software of another.
GENERATIONS = [
    ["--generation", "4.9"],
    ["--generation", "4.10"],
    ["--generation", "4.3", "--proto", "0x0200"],
    ["--generation", "4.10", "--proto", "0x0200"],
    ["--generation", "4.11"],
]
# An image that the software of the device does not go with: UHD 4.11 refuses it, and so do we.
REFUSED = ["--generation", "4.11", "--proto", "0x0100"]
DEVICES = {
    "e320": ([0, 1], 125e3, (64, 128, 256, 512), ([], ["--extra"])),
    "n310": ([0, 1, 2, 3], 125e3, (64,), ([],)),
    "n320": ([0, 1], 250e3, (64,), ([],)),
}


class Device:
    """A device for the length of a `with` block."""

    def __init__(self, folder, name, *options, inside=(), ready=ADDRESS):
        self.name, self.folder, self.inside, self.ready = name, folder, inside, ready
        self.options = options

    def __enter__(self):
        self.log = tempfile.NamedTemporaryFile("r", suffix=".log")
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            [*self.inside, PYTHON, os.path.join(self.folder, f"{self.name}.py"), "--tone",
             repr(TONE_HZ), "--log", self.log.name, *self.options],
            env=environment, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        deadline = time.monotonic() + 20
        find = [MILLSTREAM, "find", "--addr", self.ready]
        while b"serial" not in subprocess.run(find, capture_output=True, check=False).stdout:
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{self.name} did not become ready")
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def lines(self, pattern):
        """What its log says, by a pattern with groups."""
        with open(self.log.name, encoding="utf-8") as log:
            return re.findall(pattern, log.read())


def results(device, *arguments):
    """The results of a command of ours; ends the peer when it fails."""
    done = subprocess.run([MILLSTREAM, *arguments, "--json"], text=True, timeout=90, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{device.name}: millstream {' '.join(arguments)} ended with {done.returncode}:\n"
                 f"{done.stderr}\n{done.stdout}")
    return json.loads(done.stdout)["results"]


def check_receive(device, args, folder):
    """The tone lies where tuning puts it; returns the largest distance in bins."""
    channels, rate_hz, _, _ = DEVICES[device.name]
    worst = 0.0
    for lo_offset in (0.0, 15e3, -25e3):
        path = os.path.join(folder, "received.cf32")
        results(device, "rx", "--args", args, "--rate", repr(rate_hz), "--nsamps", str(2 * BINS),
                "--channel", ",".join(map(str, channels)), "--freq", repr(TUNED_HZ),
                "--lo-offset", repr(lo_offset), "--gain", "10", "--max-lost", "0", "--out", path, "--force")
        # The DDC takes away what the oscillator adds.
        want = TONE_HZ - TUNED_HZ
        for channel in channels:
            stem = f"received-ch{channel}.cf32"
            samples = np.fromfile(os.path.join(folder, stem), dtype=np.complex64)[-BINS:]
            spectrum = np.abs(np.fft.fft(samples * np.hanning(BINS)))
            found = np.fft.fftfreq(BINS, 1 / rate_hz)[int(np.argmax(spectrum))]
            away = abs(found - want) / (rate_hz / BINS)
            worst = max(worst, away)
            if away > 1 or spectrum.max() < 100 * np.median(spectrum):
                sys.exit(f"{device.name}: channel {channel}, offset {lo_offset} Hz: the tone lies "
                         f"at {found} Hz and not at {want} Hz")
    return worst


def check_transmit(device, args, folder):
    """Every sample counts as transmitted, at both ends; returns their number."""
    channels, rate_hz, *_ = DEVICES[device.name]
    path = os.path.join(folder, "sent.sc16")
    np.random.default_rng(7).integers(-9000, 9000, 2 * SENT, dtype=np.int16).tofile(path)
    total = 0
    for some in (channels[:1], channels):
        for when in ([], ["--lead", "0.3"]):
            found = results(
                device, "tx", "--args", args, "--in", path, "--rate", repr(rate_hz), "--channel",
                ",".join(map(str, some)), "--freq", "2.4e9", "--max-lost", "0", *when)["ledger"]
            total += SENT * len(some)
            if found["transmitted"] != SENT * len(some) or found["unknown"]["samples"] != 0:
                sys.exit(f"{device.name}: of {SENT * len(some)} samples the ledger has {found}")
    # The captures of this recording are bursts, on all channels: each radio block counts its own messages.
    stem = os.path.join(folder, "bursts")
    np.ones(2 * BURSTS * LENGTH, dtype=np.int16).tofile(f"{stem}.sigmf-data")
    captures = [{"core:sample_start": n * LENGTH, "core:global_index": n * APART} for n in range(BURSTS)]
    described = {"core:datatype": "ci16_le", "core:sample_rate": rate_hz, "core:version": "1.0.0"}
    with open(f"{stem}.sigmf-meta", "w", encoding="utf-8") as meta:
        json.dump({"global": described, "captures": captures, "annotations": []}, meta)
    sent = BURSTS * LENGTH * len(channels)
    found = results(device, "tx", "--args", args, "--in", f"{stem}.sigmf-meta", "--timed", "--rate", repr(rate_hz),
                    "--channel", ",".join(map(str, channels)), "--freq", "2.4e9", "--max-lost", str(sent))["ledger"]
    total += sent
    if found["transmitted"] + found["unknown"]["samples"] != sent:
        sys.exit(f"{device.name}: of {sent} samples in {BURSTS} bursts the ledger has {found}")
    counted = sum(int(samples) for samples in device.lines(r"EOB after (\d+) samples"))
    if counted != total:
        sys.exit(f"{device.name}: we transmitted {total} samples, the device counted {counted}")
    return total


def check_device(device, args, what):
    """All checks of a device."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        bins = check_receive(device, args, folder)
        sent = check_transmit(device, args, folder)
    print(f"{device.name}{what}: {len(DEVICES[device.name][0])} channels, the tone within {bins:.2f} "
          f"bins; {sent} samples transmitted ({time.monotonic() - started:.0f} s)",
          flush=True)


def check_refused(device, args):
    """A radio whose image does not go with its software is refused in words that name both."""
    done = subprocess.run([MILLSTREAM, "probe", "--args", args], text=True, timeout=90, check=False,
                          capture_output=True)
    if done.returncode == 0 or "protocol of the device is 1.0 behind MPM 7.0" not in done.stderr:
        sys.exit(f"{device.name}: probe ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    print(f"{device.name}, {' '.join(REFUSED)}: refused")


def check_two_links(folder):
    """An N320 at two addresses of two networks: both links carry samples."""
    (_, first), (_, second) = LINK_ADDRESSES
    with Neighbour(["sleep", "300"], *LINK_ADDRESSES[0], subprocess.DEVNULL, mtu=9000,
                   further=LINK_ADDRESSES[1:]) as neighbour:
        with Device(folder, "n320", "--ip", first, "--ip2", second, inside=neighbour.inside(),
                    ready=first) as device:
            check_device(device, f"addr={first},second_addr={second}", ", two links")
            time.sleep(0.5)
            sent = [int(count) for count in device.lines(r"LINKPKTS \[(\d+), (\d+)\]")[-1]]
            # The control packets take the first link only.
            if min(sent) < 0.1 * sum(sent):
                sys.exit(f"n320: its links carried {sent} packets")
            print(f"n320: its links carried {sent[0]} and {sent[1]} packets")


def main():
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        skip(f"the environment variable {FOLDER_VARIABLE} does not say where the devices are")
    if not os.path.isfile(os.path.join(folder, "e320.py")):
        skip(f"{folder}, which {FOLDER_VARIABLE} names, has no e320.py")
    if not os.access(MILLSTREAM, os.X_OK):
        skip(f"no {MILLSTREAM} (run make build)")
    has_grpc = subprocess.run([PYTHON, "-c", "import grpc"], capture_output=True, check=False).returncode == 0
    if not has_grpc:
        print("without generation 4.11: there is no Python module grpc (PyPI package grpcio)")
    enter()
    for name, (_, _, widths, extras) in DEVICES.items():
        settings = [["--W", str(width), *extra] for width in widths for extra in extras]
        settings += [one for one in GENERATIONS if (has_grpc or "4.11" not in one)]
        for options in settings:
            with Device(folder, name, "--ip", ADDRESS, *options) as device:
                check_device(device, f"addr={ADDRESS}", ", " + " ".join(options))
        if has_grpc:
            with Device(folder, name, "--ip", ADDRESS, *REFUSED) as device:
                check_refused(device, f"addr={ADDRESS}")
    check_two_links(folder)


if __name__ == "__main__":
    main()
