#!/usr/bin/python3
"""Stock UHD tools, over kernel UDP, against an emulated radio whose CHDR port is on a link of ours.

The radio sits in a network namespace of its own, joined to ours by a veth pair of 1500 and of 9000
byte frames. Its CHDR goes through AF_XDP (generic and native mode) or AF_PACKET and our own UDP/IP;
its discovery and RPC stay with the kernel, which serves the same interface.

  uhd_usrp_probe         claims, opens and describes it
  rx_samples_to_file     the ramp, without a gap
  tx_samples_from_file   random samples, bit by bit what the radio transmitted
  benchmark_rate         receives and transmits at once, all thresholds zero
  millstream rx          the ramp, by kernel UDP and by the same link on our side
  ip link                nothing is attached to either interface afterwards

Usage: peers/uhd_over_xdp.py [--only PART_OF_A_CASE]
Exit status: 0 agrees, 1 not, 77 skipped because a needed program or right is not there.
"""

import argparse
import array
import ipaddress
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import namespace
from common import MILLSTREAM, SHORT, Radio, first_difference, skip, uhd_example, uhd_output

OURS, THEIRS = "10.78.0.2", "10.78.0.1"
OUR_DEVICE, THEIR_DEVICE = "peer0", "device0"
LINKS = ["xdp:{},mode=generic", "xdp:{},mode=native", "packet:{}"]
MTUS = [1500, 9000]
RATE_HZ = 2_000_000
SAMPLES = 2_000_000
TX_SAMPLES = 300_003
BENCHMARK_RATE_HZ = 1_000_000
BENCHMARK_S = 3
# A pause of a busy machine is shorter.
BUFFERS = ["--rx-buffer-samples", str(4 * RATE_HZ), "--tx-buffer-samples", str(4 * RATE_HZ // 10)]
ATTEMPTS = 3
TROUBLES = ["tx_late_packets", "tx_sequence_errors", "tx_overflow_packets"]
ZERO = ["dropped samples", "overruns detected", "sequence errors (Tx)", "sequence errors (Rx)",
        "underruns detected", "late commands", "timeouts (Tx)", "timeouts (Rx)"]


def run(*command):
    """What a program printed; ends the peer when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def ramp_error(path):
    """None, or what is wrong with a recording of the ramp."""
    with open(path, "rb") as file:
        got = file.read()
    if len(got) != 4 * SAMPLES:
        return f"{len(got)} bytes instead of {4 * SAMPLES}"
    start = int.from_bytes(got[:4], "little")
    want = array.array("I", ((start + k) & 0xFFFFFFFF for k in range(SAMPLES)))
    return first_difference(got, want.tobytes())


def again(what, attempt_once):
    """Runs a case up to three times: this machine may be too busy to read or play in time, which
    the programs then say. None ends it well; a text says what they said."""
    for attempt in range(1, ATTEMPTS + 1):
        trouble = attempt_once()
        if trouble is None:
            return
        print(f"  {what}: this machine was too busy on attempt {attempt}: {trouble}")
    sys.exit(f"{what}: too busy {ATTEMPTS} times")


def check_probe():
    """The whole tree is read."""
    said = run("uhd_usrp_probe", "--args", f"addr={THEIRS}")
    # The emulator's default: the address as a number without its first bit.
    serial = int(ipaddress.IPv4Address(THEIRS)) & 0x7fffffff
    for part in (f"serial: {serial:08X}", "0/Radio#0"):
        if part not in said:
            sys.exit(f"uhd_usrp_probe does not say {part}:\n{said}")


def check_receive(folder):
    """UHD's recording, then ours by both links of ours."""
    path = os.path.join(folder, "recording.sc16")

    def record():
        said = uhd_output("rx_samples_to_file", "--args", f"addr={THEIRS}", "--type", "short",
                          "--rate", str(RATE_HZ), "--nsamps", str(SAMPLES), "--file", path)
        wrong = ramp_error(path)
        if wrong and not re.search(r"^O|Got an overflow", said, re.MULTILINE):
            sys.exit(f"rx_samples_to_file: {wrong}\n{said}")
        return wrong

    again("rx_samples_to_file", record)


def check_ours(folder, link):
    """Our own recording through a link."""
    path = os.path.join(folder, "ours.sc16")
    said = run(MILLSTREAM, "rx", "--args", f"addr={THEIRS},link={link}", "--rate", str(RATE_HZ),
               "--nsamps", str(SAMPLES), "--out", path, "--force")
    wrong = ramp_error(path)
    if wrong:
        sys.exit(f"millstream rx, {link}: {wrong}\n{said}")


def check_transmit(folder, start_radio):
    """A file of random samples; the radio's file has to be the same. The tool begins at once, and a
    busy machine may let the radio run dry behind the first packet: that loses no sample."""
    source, sink = (os.path.join(folder, name) for name in ("source.sc16", "sink.sc16"))
    sent = random.Random(12).randbytes(4 * TX_SAMPLES)
    with open(source, "wb") as file:
        file.write(sent)

    with start_radio("--tx-out", sink) as radio:
        uhd_output("tx_samples_from_file", "--args", f"addr={THEIRS}", "--rate",
                   str(RATE_HZ // 2), "--freq", "1e9", "--type", "short", "--file", source)
        # The tool ends when the last sample is in the radio, which then still plays.
        time.sleep(1)
    troubles = {name: radio.counters[name] for name in TROUBLES if radio.counters[name]}
    with open(sink, "rb") as file:
        got = file.read()
    wrong = first_difference(got, sent) if len(got) == len(sent) else f"{len(got)} bytes"
    if troubles or wrong:
        sys.exit(f"tx_samples_from_file: {wrong}, {troubles}")


def check_benchmark():
    """Both directions at once."""
    thresholds = [part for name in ("overrun", "underrun", "drop", "seq")
                  for part in (f"--{name}-threshold", "0")]

    def benchmark():
        command = [uhd_example("benchmark_rate"), "--args", f"addr={THEIRS}",
                   "--rx_rate", str(BENCHMARK_RATE_HZ), "--tx_rate", str(BENCHMARK_RATE_HZ),
                   "--duration", str(BENCHMARK_S), *thresholds]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        found = re.findall(r"Num ([\w ()]+): +(\d+)", done.stdout)
        counts = {name: int(number) for name, number in found}
        least = BENCHMARK_RATE_HZ * BENCHMARK_S * 8 // 10
        few = {name: counts.get(name) for name in ("received samples", "transmitted samples")
               if counts.get(name, 0) < least}
        if few:
            # UHD asks for the MTU of the path with a time-out that a busy machine may miss.
            return few | {"said": done.stdout[-500:]}
        return {name: counts.get(name) for name in ZERO if counts.get(name) != 0} or None

    again("benchmark_rate", benchmark)


def nothing_attached(pid):
    """Neither interface may hold a program."""
    for where in ([], ["nsenter", "--net", "--target", str(pid)]):
        said = run(*where, "ip", "-d", "link")
        if "xdp" in said:
            sys.exit(f"a program is still attached:\n{said}")


def check_case(link, mtu, folder):
    """Everything over one link."""
    begin = time.monotonic()
    log = subprocess.DEVNULL
    with namespace.Neighbour(["sleep", "infinity"], OURS, THEIRS, log, mtu) as neighbour:
        pid = neighbour.process.pid
        inside = ["nsenter", "--net", "--target", str(pid)]
        chdr = link.format(THEIR_DEVICE)

        def start_radio(*options):
            return Radio("--rx-antenna", "ramp", "--link", chdr, *BUFFERS, *options,
                         addr=THEIRS, inside=inside)

        with start_radio():
            check_probe()
            check_receive(folder)
            check_ours(folder, "udp")
            check_ours(folder, link.format(OUR_DEVICE))
            check_benchmark()
        check_transmit(folder, start_radio)
        nothing_attached(pid)
    print(f"agreed: --link {chdr}, MTU {mtu}: probe, {SAMPLES} samples received exactly by UHD and "
          f"twice by us, {TX_SAMPLES} transmitted exactly, both at once without trouble "
          f"({time.monotonic() - begin:.0f} s)", flush=True)


def main():
    """All links and frame sizes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="part of LINK and MTU, such as packet or 9000")
    options = parser.parse_args()
    uhd_example("rx_samples_to_file")
    if os.geteuid() != 0:
        skip("AF_XDP and AF_PACKET need root")
    namespace.enter()
    cases = [(link, mtu) for mtu in MTUS for link in LINKS if not SHORT or mtu == MTUS[0] or "native" in link]
    with tempfile.TemporaryDirectory() as folder:
        for link, mtu in cases:
            if options.only in f"{link} {mtu}":
                check_case(link, mtu, folder)


if __name__ == "__main__":
    main()
