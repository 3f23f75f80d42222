"""Shared by the peers of brokers: a live stream into a sink, an outage of the broker, and what has to hold afterwards.

The antenna of the emulated radio counts its own ticks, so every message proves its own time and contents: the samples are
the counter from its `time` on.
"""

import array
import base64
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading

from common import MILLSTREAM, Radio, die_with_parent, eventually, skip

RATE_HZ = 250_000
ITEMS = 250
OUTAGE_S = float(os.environ.get("OUTAGE_S", "5"))
PATIENCE_S = 60
GRAPH = """
[[block]]
name = "radio"
type = "radio_rx"
args = "addr={addr}"
rate_hz = {rate}

[[block]]
name = "whole"
type = "convert"
from = "cf32"
to = "sc16"

[[block]]
name = "sink"
item = "sc16"
items = {items}
stream = "ramp"
rate_hz = {rate}
metrics_s = 0.5
queue_kib = 1024
linger_s = 20.0
{sink}

[graph]
connections = ["radio -> whole -> sink"]

[plan]
[[plan.partition]]
name = "receive"
blocks = ["radio"]

[[plan.partition]]
name = "publish"
blocks = ["whole", "sink"]
"""


def load(package, module, folder):
    """A Python module, from PyPI into `folder` if it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError:
        pass
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder, package]
    done = subprocess.run(install, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, check=False)
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["pip said nothing"]
        skip(f"no Python package {package}, and pip cannot install it: {lines[-1]}")
    sys.path.insert(0, folder)
    return importlib.import_module(module)


def answers(port):
    """Whether somebody listens at a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Broker:
    """A broker, which can be killed and started again."""

    def __init__(self, command, port, folder):
        self.command, self.port, self.process = command, port, None
        self.log = open(os.path.join(folder, "broker.log"), "a", encoding="utf-8")

    def start(self):
        """Starts it; returns when it listens."""
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
                                        preexec_fn=die_with_parent)
        eventually(f"{self.command[0]} listens", lambda: self.process.poll() is not None or answers(self.port))
        if self.process.poll() is not None:
            with open(self.log.name, encoding="utf-8") as log:
                sys.exit(f"{' '.join(self.command)} ended with {self.process.returncode}:\n{log.read()}")

    def stop(self):
        """Stops it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)


class Gate:
    """A way to a broker that can be shut: connections through it are cut, and new ones refused."""

    def __init__(self, to_port):
        self.to_port, self.pairs, self.listener = to_port, [], None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def open(self):
        """Lets connections through."""
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        """Joins each connection with one to the broker."""
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self.to_port))
            except OSError:
                return
            self.pairs += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    @staticmethod
    def copy(one, other):
        """Copies bytes until either side ends."""
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def shut(self):
        """Cuts all connections."""
        # A thread in accept(2) holds the socket until it is woken.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for end in self.pairs:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.pairs = []


class LiveStream:
    """`millstream run` from an emulated radio into a sink, for the length of a `with` block."""

    def __init__(self, folder, sink):
        self.folder, self.sink, self.document = folder, sink, None
        self.radio = Radio("--rx-antenna", "ramp", "--rx-buffer-samples", str(8 * RATE_HZ))

    def __enter__(self):
        self.radio.__enter__()
        graph = os.path.join(self.folder, "publish.toml")
        with open(graph, "w", encoding="utf-8") as file:
            file.write(GRAPH.format(addr=self.radio.addr, rate=float(RATE_HZ), items=ITEMS, sink=self.sink))
        self.run = subprocess.Popen([MILLSTREAM, "run", graph, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    stdin=subprocess.DEVNULL, text=True, preexec_fn=die_with_parent)
        return self

    def end(self):
        """Ends the stream; its document, in which nothing may be lost on the way to the sink."""
        self.run.send_signal(signal.SIGINT)
        out, err = self.run.communicate(timeout=PATIENCE_S)
        if self.run.returncode != 0:
            sys.exit(f"millstream run ended with {self.run.returncode}:\n{err}")
        self.document = json.loads(out)["results"]
        (ledger,) = self.document["ledgers"]
        if not ledger["balances"] or sum(ledger["lost"].values()) != 0:
            sys.exit(f"the radio lost samples: {ledger}")
        return self.document["published"][0], ledger

    def __exit__(self, *_):
        if self.run.poll() is None:
            self.run.kill()
            self.run.communicate()
        self.radio.__exit__()


def in_order(documents):
    """The numbers of messages in the order of their arrival, each once, and how many came again."""
    numbers, again = [], 0
    for document in documents:
        if numbers and document["seq"] <= numbers[-1]:
            again += 1
            continue
        numbers.append(document["seq"])
        if document["kind"] == "packet":
            check_samples(document)
    return numbers, again


def dropped_of(published):
    """The number of dropped messages, of a ledger that balances."""
    dropped = sum(published["dropped"].values())
    if not published["balances"] or published["offered"] != published["acknowledged"] + dropped:
        sys.exit(f"the ledger does not balance: {published}")
    return dropped


def check(messages, published, ledger):
    """Messages in the order of their arrival, each JSON text: all that the broker acknowledged, and nothing wrong."""
    documents = [json.loads(message) for message in messages]
    numbers, again = in_order(documents)
    if again > published["resent"]:
        sys.exit(f"{again} messages came twice or out of order, and {published['resent']} were sent again")
    dropped = dropped_of(published)
    if len(numbers) != published["acknowledged"]:
        sys.exit(f"{len(numbers)} messages came, and the broker acknowledged {published['acknowledged']}")
    missing = set(range(published["offered"])) - set(numbers)
    away = published["dropped"]["broker_away"]
    # Right after its return the queue is still full.
    if len(missing) != dropped or away == 0 or away + published["dropped"]["queue_full"] != dropped:
        sys.exit(f"{len(missing)} messages are missing, and {published['dropped']} were counted")
    kinds = {document["kind"] for document in documents}
    if not {"packet", "tag", "metrics"} <= kinds:
        sys.exit(f"there are messages of {kinds} only")
    if published["connections"] < 2:
        sys.exit(f"it connected {published['connections']} times")
    print(f"agreed: {ledger['delivered']} samples without loss in an outage of {OUTAGE_S:.0f} s; {published['offered']} messages "
          f"offered = {len(numbers)} received + {dropped} dropped, {again} came twice; connected {published['connections']} times")


def check_samples(document):
    """The samples of a message are the counter from its time on."""
    seconds, nanos = document["time"].split(".")
    tick = int(seconds) * RATE_HZ + round(int(nanos) * RATE_HZ / 1e9)
    data = base64.b64decode(document["data"])
    want = array.array("I", ((tick + k) & 0xFFFFFFFF for k in range(len(data) // 4))).tobytes()
    if data != want or len(data) != document["bytes"]:
        sys.exit(f"message {document['seq']} of {document['time']} s has other samples: "
                 f"{data[:4].hex()} for {want[:4].hex()} at its first")
