"""Shared by the peers of `millstream serve rtl-tcp`: a server with an emulated radio."""

import json
import os
import signal
import subprocess
import tempfile
import time

from common import MILLSTREAM, die_with_parent, free_port, skip


class RtlServer:
    """A server for the length of a `with` block; it has to end cleanly.

    `address` is where it listens. What it counted is in `results` once it has ended.
    """

    def __init__(self, args, *options):
        if not os.access(MILLSTREAM, os.X_OK):
            skip(f"no {MILLSTREAM} (run make build)")
        self.address = f"127.0.0.1:{free_port()}"
        self.command = [MILLSTREAM, "serve", "rtl-tcp", "--json", "--args", args, "--listen", self.address, *options]
        self.results = {}

    def __enter__(self):
        self.log, self.document = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.command, stdout=self.document, stderr=self.log,
                                        stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        port = f":{int(self.address.rsplit(':', 1)[1]):04X} "
        deadline = time.monotonic() + 20
        # A connection would be a client: the table of the kernel says whether it listens.
        while not self.listens(port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError("the server did not begin:\n" + self.said())
            time.sleep(0.05)
        return self

    @staticmethod
    def listens(port):
        with open("/proc/net/tcp", encoding="ascii") as table:
            # The local address, and the state 0A: it listens.
            return any(port in line[:21] + " " and line.split()[3] == "0A" for line in table.readlines()[1:])

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        if status != 0:
            raise RuntimeError(f"the server ended with {status}:\n{self.said()}")
        self.document.seek(0)
        self.results = json.load(self.document)["results"]

    def said(self):
        self.log.seek(0)
        return self.log.read()
