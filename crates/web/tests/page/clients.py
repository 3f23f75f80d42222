"""Plain clients of the dashboard's protocol, without a browser: each takes lines and counts them."""

import base64
import json
import os
import socket
import struct
import threading


class Client(threading.Thread):
    """A client that subscribes to a stream and reads until it is stopped."""

    def __init__(self, port, lines_per_s=30, bins=1024):
        super().__init__(daemon=True)
        self.lines = self.line_bytes = self.bytes = 0
        self.over = None
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                             f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n").encode())
        self.reader = self.socket.makefile("rb")
        while self.reader.readline() not in (b"\r\n", b""):
            pass
        self.say(1, json.dumps({"type": "subscribe", "stream": 0, "bins": bins, "lines_per_s": lines_per_s}).encode())

    def say(self, kind, payload):
        """Sends a frame; those of clients are masked, here with zeros."""
        assert len(payload) < 126
        self.socket.sendall(bytes([0x80 | kind, 0x80 | len(payload), 0, 0, 0, 0]) + payload)

    def run(self):
        try:
            while self.over is None:
                head = self.reader.read(2)
                if len(head) < 2:
                    self.over = "the server has closed"
                    return
                length = head[1] & 0x7F
                if length >= 126:
                    length = struct.unpack(">H" if length == 126 else ">Q", self.reader.read(2 if length == 126 else 8))[0]
                payload = self.reader.read(length)
                kind = head[0] & 0x0F
                self.lines += kind == 2
                self.line_bytes += length * (kind == 2)
                self.bytes += length
                if kind == 9:
                    self.say(10, payload)
        except OSError as error:
            self.over = str(error)

    def stop(self):
        """Ends it."""
        self.over = self.over or "stopped"
        self.socket.close()
