"""A screen without a display for the peers with windows: pictures of it, and keys for it."""

import ctypes
import os
import struct
import subprocess
import time
import zlib

import numpy as np

from common import die_with_parent

WIDTH, HEIGHT = 1280, 800


class Desktop:
    """A screen, and a sound server without a card, for programs with windows; all end with the `with` block."""

    def __init__(self, folder, xvfb, pulseaudio):
        self.folder, self.programs, self.processes = folder, (xvfb, pulseaudio), []
        self.display = f":{200 + os.getpid() % 5000}"
        self.environment = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_RUNTIME_DIR": folder,
                            "DISPLAY": self.display}
        self.environment.pop("PULSE_SERVER", None)

    def __enter__(self):
        xvfb, pulseaudio = self.programs
        os.chmod(self.folder, 0o700)
        self.start(xvfb, self.display, "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-fbdir", self.folder, "-nolisten", "tcp")
        self.start(pulseaudio, "--daemonize=no", "--exit-idle-time=-1", "-n", "--load=module-null-sink",
                   "--load=module-native-protocol-unix")
        self.wait_for("the sound server", lambda: os.path.exists(os.path.join(self.folder, "pulse/native")))
        self.wait_for("the screen", lambda: os.path.exists(f"/tmp/.X11-unix/X{self.display[1:]}"))
        self.screen = Screen(self.display, os.path.join(self.folder, "Xvfb_screen0"))
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, *command, **environment):
        """A process on this desktop."""
        with open(os.path.join(self.folder, os.path.basename(command[0]) + ".log"), "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
                                       preexec_fn=die_with_parent, env={**self.environment, **environment})
        self.processes.append(process)
        return process

    def wait_for(self, what, condition, seconds=30):
        """Waits until the condition returns something that is true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                result = condition()
            except OSError:
                result = None
            if result:
                return result
            time.sleep(0.2)
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as log:
                    print(f"{name} ends with:", *log.read().splitlines()[-8:], sep="\n  ")
        raise SystemExit(f"{what} did not come within {seconds} s")


class Screen:
    """The screen of an Xvfb that keeps it in a file (-fbdir)."""

    def __init__(self, display, file):
        self.file = file
        self.x11, self.test = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXtst.so.6")
        self.x11.XOpenDisplay.restype = ctypes.c_void_p
        self.x11.XStringToKeysym.restype = ctypes.c_ulong
        self.display = ctypes.c_void_p(self.x11.XOpenDisplay(display.encode()))
        if not self.display:
            raise RuntimeError(f"no X server at {display}")

    def pixels(self):
        """Its pixels: rows of red, green and blue."""
        with open(self.file, "rb") as file:
            data = file.read()
        # X11/XWDFile.h: the header's size, then 24 more words; colours of 12 bytes follow the header.
        header = struct.unpack(">25I", data[:100])
        size, width, height, bytes_per_line, colours = header[0], header[4], header[5], header[12], header[19]
        begin = size + 12 * colours
        rows = np.frombuffer(data[begin:begin + bytes_per_line * height], np.uint8).reshape(height, bytes_per_line)
        return rows[:, :4 * width].reshape(height, width, 4)[:, :, 2::-1]

    def save(self, path):
        """Writes a PNG."""
        pixels = self.pixels()
        height, width, _ = pixels.shape
        rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))

        def chunk(kind, body):
            return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

        header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
        with open(path, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
                       chunk(b"IEND", b""))

    def press(self, *names):
        """Presses keys together, such as Control_L and d."""
        codes = [self.x11.XKeysymToKeycode(self.display, ctypes.c_ulong(self.x11.XStringToKeysym(name.encode())))
                 for name in names]
        for code, down in [*((code, 1) for code in codes), *((code, 0) for code in reversed(codes))]:
            self.test.XTestFakeKeyEvent(self.display, code, down, 0)
            self.x11.XFlush(self.display)

    def click(self, x, y):
        """Clicks at a place."""
        self.test.XTestFakeMotionEvent(self.display, -1, x, y, 0)
        for down in (1, 0):
            self.test.XTestFakeButtonEvent(self.display, 1, down, 0)
        self.x11.XFlush(self.display)
