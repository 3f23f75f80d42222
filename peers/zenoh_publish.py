#!/usr/bin/env python3
"""The Zenoh project's own Python package against `zenoh_sink`, with a subscriber that is killed and comes again.

A live stream from an emulated radio is published in peer mode, on loopback and without multicast. Every message that came is in order
and has the samples of its time; the radio lost none. Zenoh acknowledges nothing, so what was under way when the subscriber
was killed is lost and counts as acknowledged: the script says how much that was. Everything else that is missing is as
many as the ledger counts as dropped. OUTAGE_S=30 makes the outage longer.

The package eclipse-zenoh is taken as installed, or from PyPI into a throw-away folder. MILLSTREAM names a program that was
built with the feature `zenoh` (cargo build -p millstream-cli --features zenoh); others have no such sink.

Exit status: 0 agrees, 1 not, 77 skipped because something needed is not there.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from common import MILLSTREAM, die_with_parent, eventually, free_port, skip
from publish_common import OUTAGE_S, LiveStream, dropped_of, in_order, load

# The most messages that may be under way to a subscriber that is killed. The kernel keeps twice the 256 KiB of so_sndbuf for
# the sink, less than 1 MiB for a subscriber that reads all the time, and Zenoh some batches of 64 KiB: less than 2 MiB, and
# a message has 1.5 kB.
UNDER_WAY_MAX = 1400
SUBSCRIBER = """
import json, os, sys, time, zenoh
config = zenoh.Config()
config.insert_json5("listen/endpoints", json.dumps([sys.argv[1]]))
config.insert_json5("scouting/multicast/enabled", "false")
session = zenoh.open(config)
take = lambda sample: os.write(1, sample.payload.to_bytes() + b"\\n")
subscriber = session.declare_subscriber("radio/**", take)
time.sleep(3600)
"""


class Subscriber:
    """A process that writes what it gets to a file, a line each."""

    def __init__(self, endpoint, path, packages):
        self.command = [sys.executable, "-c", SUBSCRIBER, endpoint]
        self.path = path
        paths = [packages, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self.process = None

    def start(self):
        with open(self.path, "ab") as file:
            self.process = subprocess.Popen(self.command, stdout=file, env=self.environment, preexec_fn=die_with_parent)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def lines(self):
        with open(self.path, "rb") as file:
            return file.read().split(b"\n")[:-1]


def has_sink():
    """Whether the program was built with the sink."""
    try:
        asked = subprocess.run([MILLSTREAM, "graph", "blocks", "zenoh_sink"], capture_output=True, check=False)
    except OSError:
        return False
    return asked.returncode == 0


def check(lines, before, published, ledger):
    """Nothing wrong, doubled or missing but what the ledger says and what was under way at the kill, behind the first
    `before` lines."""
    documents = [json.loads(line) for line in lines]
    at_kill = documents[:before][-1]["seq"] if documents[:before] else -1
    numbers, again = in_order(documents)
    dropped = dropped_of(published)
    under_way = published["acknowledged"] - len(numbers)
    if not 0 <= under_way <= UNDER_WAY_MAX or again > published["resent"]:
        sys.exit(f"{len(numbers)} messages came, {again} of them twice: {published}")
    # One run behind the last message before the kill, and otherwise only what was dropped.
    first = next((number for number in numbers if number > at_kill), published["offered"])
    missing = published["offered"] - len(numbers)
    elsewhere = missing - (first - at_kill - 1)
    if not 0 <= elsewhere <= dropped:
        sys.exit(f"{missing} messages are missing, {elsewhere} of them not from {at_kill + 1} to {first - 1}, where the "
                 f"subscriber was killed: {published}")
    if published["dropped"]["receiver_away"] == 0 or published["connections"] < 2:
        sys.exit(f"the outage was not noticed: {published}")
    print(f"agreed: {ledger['delivered']} samples without loss in an outage of {OUTAGE_S:.0f} s; {published['offered']} messages "
          f"offered = {published['acknowledged']} acknowledged + {dropped} dropped; {len(numbers)} received, {under_way} were "
          f"under way when the subscriber was killed, {again} came twice")


def main():
    """Publishes across an outage."""
    if not has_sink():
        skip(f"{MILLSTREAM} has no zenoh_sink (cargo build -p millstream-cli --features zenoh)")
    with tempfile.TemporaryDirectory() as packages, tempfile.TemporaryDirectory() as folder:
        load("eclipse-zenoh", "zenoh", packages)
        endpoint = f"tcp/127.0.0.1:{free_port()}"
        subscriber = Subscriber(endpoint, os.path.join(folder, "messages"), packages)
        subscriber.start()
        sink = f'type = "zenoh_sink"\nkey = "radio/ramp"\nconnect = "{endpoint}"\nlisten = "tcp/127.0.0.1:0"\nscouting = false'
        with LiveStream(folder, sink) as stream:
            eventually("the first messages", lambda: len(subscriber.lines()) > 1000)
            subscriber.kill()
            time.sleep(OUTAGE_S)
            before = len(subscriber.lines())
            subscriber.start()
            eventually("messages after the outage", lambda: len(subscriber.lines()) > before + 4000)
            published, ledger = stream.end()
        # The last ones may still be on their way.
        time.sleep(0.5)
        subscriber.kill()
        check(subscriber.lines(), before, published, ledger)


if __name__ == "__main__":
    main()
