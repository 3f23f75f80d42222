#!/usr/bin/python3
"""Our host against UHD's own MPM simulator: a device that nobody here wrote.

  find       millstream finds it and names its serial number
  receive    stock rx_samples_to_file (the control), then millstream rx: the recording has
             to be the simulator's source file, and the claim is gone afterwards
  transmit   stock tx_samples_from_file (the control), then millstream tx: the simulator's sink
             has to get the file

The simulator's queue of stream statuses holds 100 and is drained only when the window closes: the
window has to stay below 1 MB. It sends to one host per session and at most 4 MS/s.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time

import mpm_simulator
import namespace
from common import MILLSTREAM, PYTHON, first_difference, skip, uhd_example

OURS, THEIRS = "10.77.3.2", "10.77.3.1"
# It delivers a quarter of it.
RATE_HZ = 4e6
SAMPLES = 1_000_003
# More than it ever sends: where it repeats a file it sends a short packet.
SOURCE_SAMPLES = 2 * SAMPLES
WINDOW_BYTES = 400_000
TX_RATE_HZ = 500e3
TX_SAMPLES = 200_003
HERE = os.path.dirname(os.path.abspath(__file__))


def run(command):
    """Its standard output and error; ends the peer when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def wait_until_found():
    """Until `millstream find` sees the simulator, with its RPC server running; its entry."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done = subprocess.run([MILLSTREAM, "find", "--addr", THEIRS, "--json"],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            radio = json.loads(done.stdout)["results"]["radios"][0]
            if radio["fields"]["serial"]:
                return radio
        time.sleep(0.2)
    sys.exit(f"millstream find does not see the simulator within 20 s {done.stderr}")


def check_recording(name, path, source):
    """The recording has to be the beginning of the source."""
    with open(path, "rb") as file:
        got = file.read()
    if len(got) != 4 * SAMPLES:
        sys.exit(f"{name}: {len(got)} bytes instead of {4 * SAMPLES}")
    wrong = first_difference(got, source[:len(got)])
    if wrong is not None:
        sys.exit(f"{name}: {wrong}")
    print(f"{name}: {SAMPLES} samples exact")


def check_transmission(name, command, source_path, sink_path):
    """What the simulator got has to be the beginning of the source, and at most the end of burst
    behind it: one sample of zeros."""
    with open(source_path, "rb") as file:
        sent = file.read(4 * TX_SAMPLES)
    path = source_path + ".tx.sc16"
    with open(path, "wb") as file:
        file.write(sent)
    run([*command, path])
    deadline = time.monotonic() + 5
    while os.path.getsize(sink_path) < len(sent) and time.monotonic() < deadline:
        time.sleep(0.05)
    with open(sink_path, "rb") as file:
        got = file.read()
    if got not in (sent, sent + bytes(4)):
        sys.exit(f"{name}: {len(got)} bytes arrived of {len(sent)}; "
                 f"{first_difference(got[:len(sent)], sent[:len(got)]) or 'what arrived is right'}")
    print(f"{name}: {TX_SAMPLES} samples exact")


def check_transmit(source_path, sink_path):
    """UHD's transmitter as the control, then ours."""
    check_transmission(
        "tx_samples_from_file",
        [uhd_example("tx_samples_from_file"), "--args", f"addr={THEIRS}", "--rate", str(TX_RATE_HZ),
         "--freq", "1e9", "--type", "short", "--file"], source_path, sink_path)
    check_transmission(
        "millstream tx",
        [MILLSTREAM, "tx", "--args", f"addr={THEIRS}", "--rate", str(TX_RATE_HZ), "--in"],
        source_path, sink_path)


def check_receive(folder, source):
    """UHD's receiver as the control, then ours."""
    path = os.path.join(folder, "recording.sc16")
    run([uhd_example("rx_samples_to_file"), "--type", "short", "--rate", str(RATE_HZ),
         "--args", f"addr={THEIRS},recv_buff_size={WINDOW_BYTES}",
         "--nsamps", str(SAMPLES), "--file", path])
    check_recording("rx_samples_to_file", path, source)
    run([MILLSTREAM, "rx", "--args", f"addr={THEIRS},recv_queue_bytes={WINDOW_BYTES}",
         "--rate", str(RATE_HZ), "--nsamps", str(SAMPLES), "--out", path, "--force"])
    check_recording("millstream rx", path, source)
    if wait_until_found()["claimed"]:
        sys.exit("millstream rx left the simulator claimed")


def check_found():
    """It is the simulator that answers."""
    fields = wait_until_found()["fields"]
    if fields["serial"] != mpm_simulator.SERIAL:
        sys.exit(f"millstream find names another device: {fields}")
    print(f"millstream find: {fields['product']}, serial {fields['serial']}")


def main():
    """Starts the simulator in a namespace of its own and checks."""
    missing = mpm_simulator.missing_packages()
    if missing:
        skip(f"UHD's MPM simulator needs the Debian packages {' '.join(missing)}")
    uhd_example("rx_samples_to_file")
    namespace.enter()
    source = random.Random(3).randbytes(4 * SOURCE_SAMPLES)
    with tempfile.TemporaryDirectory() as folder:
        source_path, sink_path = (os.path.join(folder, name) for name in ("source", "sink"))
        with open(source_path, "wb") as file:
            file.write(source)
        with open(os.path.join(folder, "simulator.log"), "w+", encoding="utf-8") as log:
            command = [PYTHON, os.path.join(HERE, "mpm_simulator.py"), source_path, sink_path]
            try:
                with namespace.Neighbour(command, OURS, THEIRS, log):
                    check_found()
                    check_receive(folder, source)
                    check_transmit(source_path, sink_path)
            except SystemExit:
                log.seek(0)
                sys.stderr.writelines(f"simulator: {line}" for line in log)
                raise
    print("agreed: UHD's MPM simulator")


if __name__ == "__main__":
    main()
