#!/usr/bin/env python3
"""Mosquitto and its client `mosquitto_sub` against `mqtt_sink`, with an outage of the broker.

A live stream from an emulated radio is published while the broker is killed and started again. The subscriber has a
session that the broker keeps, so it gets exactly the messages that the sink's ledger calls acknowledged, in order; the
missing ones are as many as it counts as dropped; each has the samples of its time; and the radio lost none. OUTAGE_S=30
makes the outage longer.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import os
import shutil
import subprocess
import tempfile
import time

from common import die_with_parent, eventually, free_port, skip
from publish_common import OUTAGE_S, Broker, Gate, LiveStream, check

CONFIGURATION = """
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
max_queued_messages 0
max_inflight_messages 0
user root
"""


def lines(path):
    """The complete lines of a file that grows."""
    with open(path, "rb") as file:
        return file.read().split(b"\n")[:-1]


def main():
    """Publishes across an outage."""
    for program, package in (("mosquitto", "mosquitto"), ("mosquitto_sub", "mosquitto-clients")):
        if shutil.which(program) is None:
            skip(f"no {program} (Debian package {package})")
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        configuration = os.path.join(folder, "mosquitto.conf")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(port=port, folder=folder))
        broker = Broker(["mosquitto", "-c", configuration], port, folder)
        broker.start()
        got = os.path.join(folder, "got.jsonl")
        with open(got, "wb") as out:
            subscriber = subprocess.Popen(
                ["mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-t", "radio/#", "-q", "1", "-c", "-i", "peer", "-k", "5"],
                stdout=out, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        try:
            time.sleep(1)
            gate = Gate(port)
            gate.open()
            sink = f'type = "mqtt_sink"\ntopic = "radio/ramp"\nbroker = "127.0.0.1:{gate.port}"'
            with LiveStream(folder, sink) as stream:
                eventually("the first messages", lambda: len(lines(got)) > 1000)
                gate.shut()
                time.sleep(1)
                # Its end is orderly: what it acknowledged is on the disk.
                broker.stop()
                time.sleep(OUTAGE_S)
                broker.start()
                before = len(lines(got))
                gate.open()
                eventually("messages after the outage", lambda: len(lines(got)) > before + 4000)
                published, ledger = stream.end()
            eventually("the last messages", lambda: len(lines(got)) >= published["acknowledged"])
            time.sleep(0.5)
            check(lines(got), published, ledger)
        finally:
            subscriber.kill()
            subscriber.wait()
            broker.stop()


if __name__ == "__main__":
    main()
