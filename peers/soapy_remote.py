#!/usr/bin/python3
"""SoapyRemote in front of our module: its server opens the radio, and its client in another process reads over TCP.

The server reads with a time-out, and again with none, from one thread, and sets from another one. Every gap has to
arrive with the time at which samples resume.

The server ends unless it finds a daemon for its name in the network, so it gets one on a message bus of its own, which
knows only the loopback interface.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import os
import subprocess
import tempfile
import time

from common import die_with_parent, free_port, skip
from soapy_common import RAMP, drawn_gaps, text_of, use_module

SERVER, DBUS, AVAHI = use_module("SoapySDRServer", "dbus-daemon", "avahi-daemon")
try:
    import numpy as np
    import SoapySDR
    from SoapySDR import SOAPY_SDR_CS16, SOAPY_SDR_OVERFLOW, SOAPY_SDR_RX, SOAPY_SDR_TIMEOUT
except ImportError as missing:
    skip(f"{missing} (Debian packages python3-soapysdr and python3-numpy)")

RATE_HZ, NS, PACKET = 1e6, 1000, 500
FAULT, GAPS = drawn_gaps(PACKET)
PATIENCE_US = 5_000_000


KINDS = ["method_call", "signal", "method_return", "error"]
BUS = f"""<busconfig><type>system</type><listen>unix:path={{folder}}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/>
{"".join(f'<allow send_type="{kind}"/><allow receive_type="{kind}"/>' for kind in KINDS)}</policy></busconfig>
"""


def main():
    if os.geteuid() != 0:
        skip("avahi-daemon needs root")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in [("bus.conf", BUS.format(folder=folder)),
                           ("avahi.conf", "[server]\nallow-interfaces=lo\nuse-ipv6=no\n")]:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/bus"}
        processes = []

        def start(*command):
            processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                              env=environment, preexec_fn=die_with_parent))

        try:
            start(DBUS, f"--config-file={folder}/bus.conf", "--nofork")
            wait_for(os.path.join(folder, "bus"))
            start(AVAHI, f"--file={folder}/avahi.conf", "--no-drop-root", "--no-chroot", "--no-rlimits")
            time.sleep(1)
            start(SERVER, f"--bind=127.0.0.1:{port}")
            look(port)
        finally:
            for process in reversed(processes):
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()


def wait_for(path):
    until = time.monotonic() + 10
    while not os.path.exists(path):
        if time.monotonic() > until:
            raise SystemExit(f"{path} did not come")
        time.sleep(0.05)


def opened(args):
    """The radio behind the server, once that listens."""
    until = time.monotonic() + 20
    while True:
        try:
            return SoapySDR.Device(text_of(args))
        except Exception:  # SWIG has its own classes.
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def look(port):
    # The client takes the keys that begin so away, and the server gets the others.
    args = {"driver": "remote", "remote": f"tcp://127.0.0.1:{port}", "remote:driver": "millstream",
            **{key: value for key, value in RAMP.items() if key != "driver"},
            "fault": FAULT}
    radio = opened(args)
    assert radio.getHardwareKey() == "e320", radio.getHardwareKey()
    radio.setSampleRate(SOAPY_SDR_RX, 0, RATE_HZ)
    stream = radio.setupStream(SOAPY_SDR_RX, SOAPY_SDR_CS16, [0], {"remote:prot": "tcp", "spp": str(PACKET)})
    buffer = np.zeros((4096, 2), np.int16)
    assert radio.activateStream(stream) == 0
    due, gaps, overflows, samples = None, [], 0, 0
    while len(gaps) < len(GAPS):
        got = radio.readStream(stream, [buffer], len(buffer), timeoutUs=PATIENCE_US)
        if got.ret == SOAPY_SDR_OVERFLOW:
            overflows += 1
            continue
        assert got.ret > 0, got
        if due not in (None, got.timeNs):
            gaps.append((got.timeNs - due) // NS)
        times = buffer[:got.ret].astype(np.int64) & 0xFFFF
        assert np.array_equal(times[:, 1] << 16 | times[:, 0], got.timeNs // NS + np.arange(got.ret)), got
        due = got.timeNs + got.ret * NS
        samples += got.ret
    lost = int(radio.readSensor(SOAPY_SDR_RX, 0, "ledger_lost"))
    assert gaps == GAPS and lost == sum(GAPS), (gaps, lost)
    events = 0
    while radio.readStreamStatus(stream, timeoutUs=100_000).ret == SOAPY_SDR_OVERFLOW:
        events += 1
    print(f"SoapyRemote: {samples} samples at their times; {len(gaps)} gaps of {min(gaps)} to {max(gaps)} samples by the times "
          f"of reads, {overflows} overflows of reads, {events} of the status")
    assert overflows == len(GAPS), overflows
    assert radio.deactivateStream(stream) == 0
    radio.closeStream(stream)


main()
