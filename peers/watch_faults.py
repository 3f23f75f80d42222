#!/usr/bin/python3
"""Drawn faults with known truth against stock programs: does `millstream watch` name the hop?

An emulated radio has a network namespace of its own, the program has ours, and a veth pair joins
them. Each case draws a program, a rate, an MTU and a fault, and runs the program with a watcher
beside it. The truth is not the watcher's: tcpdump on both ends of the wire, read packet by packet
(watching.py), the emulator's counters, `/proc/net/snmp` of the namespace, `tc -s` and `ss -m`.
Losses that nobody drew count, too: on a busy machine they come by themselves.

The account of the capture (`inspect`) has to be exact: packets, gaps, each with its place, its
number and its length. Of the watcher's verdicts none may be wrong without "perhaps", and of the
cases at least 98 % have to name the right hop.

Usage: watch_faults.py [--cases N] [--seed S] [--only KIND,...] [--case NUMBER] [--uhd SUITE] [--keep FOLDER]
KIND `backlog` changes net.core.netdev_max_backlog of the whole machine for seconds: only with --only.
Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import namespace
import watching
from common import (LIMIT_S, MILLSTREAM, PYTHON, ROOT, SHORT, Radio, beside, built, die_with_parent,
                    eventually, skip, uhd_example)
from watching import Capture, Numbered, Void

HOST, RADIO, CONTROL = "10.77.0.1", "10.77.0.2", "10.77.0.2:5555"
ARGS = f"addr={RADIO}"
SECONDS, BEGUN_BYTES = 2.5, 2_000_000
RIGHT_SHARE = 0.98
BACKLOG = "/proc/sys/net/core/netdev_max_backlog"
# A case whose harness failed is drawn again, so often in a row.
VOID_MAX = 5
SHORT_CASES = 5
HOPS = ["radio", "wire", "card", "backlog", "stack", "socket", "program", "send_queue"]
# Where packets are lost, and not time.
COUNTED = {"wire", "backlog", "socket", "send_queue"}
WORDS = ["right", "perhaps", "count", "not found", "wrong"]

Kind = collections.namedtuple("Kind", "programs fault hops")


class Wrong(Exception):
    """The watcher itself fails."""


Setting = collections.namedtuple("Setting", "kind program rate mtu link buffer radio_buffer draw")


def uhd_rx(case):
    return [uhd_example("rx_samples_to_file"), "--args", uhd_args(case), "--rate", str(case.rate),
            "--duration", str(SECONDS), "--null"]


def uhd_tx(case):
    return [uhd_example("tx_waveforms"), "--args", ARGS, "--rate", str(case.rate), "--freq", "1e9",
            "--nsamps", str(int(SECONDS * case.rate))]


def bench_rx(case):
    return [uhd_example("benchmark_rate"), "--args", uhd_args(case), "--rx_rate", str(case.rate),
            "--duration", str(SECONDS)]


def bench_both(case):
    return [*bench_rx(case), "--tx_rate", str(case.rate)]


def bench_two(case):
    return [*bench_rx(case), "--rx_channels", "0,1"]


def gnuradio(case):
    return ["/usr/bin/uhd_rx_cfile", "-f", "1e9", "-a", uhd_args(case), "-r", str(case.rate),
            "-N", str(int(SECONDS * case.rate)), "/dev/null"]


def soapy(case):
    return ["SoapySDRUtil", f"--args=driver=millstream,{ours_args(case)}", f"--rate={case.rate}",
            "--channels=0", "--direction=RX"]


def ours(case):
    return [MILLSTREAM, "rx", "--args", ours_args(case), "--rate", str(case.rate), "--duration",
            str(SECONDS), "--out", "/dev/null"]


def late(_case):
    return [uhd_example("latency_test"), "--args", ARGS, "--rate", "1e6", "--nruns", "400",
            "--rtt", "0.000001"]


def late_command(_case):
    return [uhd_example("rx_timed_samples"), "--args", ARGS, "--rate", "1e6", "--nsamps", "100000",
            "--secs", "-0.5"]


def uhd_args(case):
    return ARGS + (f",recv_buff_size={case.buffer}" if case.buffer else "")


def ours_args(case):
    return ARGS + (f",recv_queue_bytes={case.buffer}" if case.buffer else "")


class Running:
    """What a fault may touch: the program, its radio, and this case's draws."""

    def __init__(self, case, process, neighbour):
        self.case, self.process, self.neighbour = case, process, neighbour
        self.undo = contextlib.ExitStack()

    def emulator(self, *words):
        """Adds a fault of the emulated radio."""
        subprocess.run([MILLSTREAM, "sim", "fault", CONTROL, "add", *map(str, words)], check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self, seconds):
        """The program does not run for a while."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)


def nothing(_running):
    """A healthy run."""


def lose_to_host(running):
    draw = running.case.draw
    running.emulator("lose", "to_host", "data", f"p={draw.uniform(0.002, 0.05):.4f}",
                     f"seed={draw.randrange(1000)}", f"count={draw.randrange(1, 100)}")


def lose_burst(running):
    running.emulator("lose", "to_host", "data", f"count={running.case.draw.randrange(2, 300)}")


def lose_to_device(running):
    draw = running.case.draw
    running.emulator("lose", "to_device", "data", f"p={draw.uniform(0.002, 0.05):.4f}",
                     f"seed={draw.randrange(1000)}", f"count={draw.randrange(1, 60)}")


def lose_on_wire(running):
    """The far end's queue drops each packet whose number ends in one byte."""
    byte = running.case.draw.randrange(256)
    far = [*running.neighbour.inside(), "tc"]
    drop = ["parent", "1:", "classid", "1:2", "htb", "rate", "8bit", "ceil", "8bit", "quantum", "1500"]
    match = ["match", "u16", "49153", "0xffff", "at", "20", "match", "u8", str(byte), "0xff", "at", "32",
             "match", "u8", "0xc0", "0xc0", "at", "34"]
    for words in [["class", "add", "dev", "device0", *drop],
                  ["qdisc", "add", "dev", "device0", "parent", "1:2", "pfifo", "limit", "0"],
                  ["filter", "add", "dev", "device0", "parent", "1:", "protocol", "ip", "u32", *match, "flowid",
                   "1:2"]]:
        subprocess.run([*far, *words], check=True)


def reorder(running):
    running.emulator("reorder", "to_host", "data", f"packets={running.case.draw.randrange(1, 6)}", "every=50")


def duplicate(running):
    running.emulator("duplicate", "to_host", "data", "every=40")


def tiny_socket(running):
    """The kernel keeps a few packets, and the reader pauses for less than a person would see."""
    draw = running.case.draw
    if not watching.shrink_sockets(running.process.pid, draw.randrange(8_000, 60_000)):
        raise Void("the program has no socket to shrink")
    for _ in range(draw.randrange(1, 4)):
        running.stop(draw.uniform(0.02, 0.08))
        time.sleep(0.2)


def stop_reader(running):
    running.stop(running.case.draw.uniform(0.25, 0.6))


def busy_neighbour(running):
    """Another has the program's CPU, with a priority that nobody interrupts."""
    cpu = max(os.sched_getaffinity(0))
    for task in os.listdir(f"/proc/{running.process.pid}/task"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(task), {cpu})
    hog = beside([PYTHON, "-c", "while True: pass"], cpu, os.SCHED_FIFO, 10)
    time.sleep(running.case.draw.uniform(0.3, 0.6))
    hog.kill()
    hog.wait()


def stall_radio(running):
    running.emulator("stall", f"ms={running.case.draw.randrange(250, 500)}")


def jump_clock(running):
    running.emulator("clock_jump", f"ticks={running.case.draw.randrange(1000, 100_000)}")


def lose_reports(running):
    running.emulator("lose", "to_device", "status", f"for_ms={running.case.draw.randrange(300, 600)}")


def short_queue(running):
    """Packets on their way out find no room for a while."""
    tc = ["tc", "qdisc", "replace", "dev", "peer0", "root"]
    draw = running.case.draw
    rate = int(running.case.rate * 32 * draw.uniform(0.5, 0.9))
    subprocess.run([*tc, "tbf", "rate", str(rate), "burst", "20000", "limit", str(draw.randrange(20_000, 60_000))],
                   check=True)
    time.sleep(draw.uniform(0.1, 0.3))
    running.queue_dropped = watching.queue_dropped("peer0")
    subprocess.run(["tc", "qdisc", "del", "dev", "peer0", "root"], check=True)


def short_backlog(running):
    """The CPUs' backlogs keep a few packets. It is a setting of the whole machine."""
    with open(BACKLOG, "r+", encoding="ascii") as setting:
        before = setting.read()
        try:
            setting.seek(0)
            setting.write(str(running.case.draw.randrange(1, 9)))
            setting.flush()
            time.sleep(0.5)
        finally:
            setting.seek(0)
            setting.write(before)
            setting.flush()


RECEIVERS = [uhd_rx, bench_rx, bench_two, gnuradio, soapy, ours]
STALLED = [uhd_rx, bench_rx, gnuradio, ours]
KINDS = {
    "healthy": Kind([*RECEIVERS, uhd_tx, bench_both], nothing, set()),
    "lost": Kind([*RECEIVERS, bench_both], lose_to_host, {"wire"}),
    "burst-lost": Kind(RECEIVERS, lose_burst, {"wire"}),
    "wire": Kind(RECEIVERS, lose_on_wire, {"wire"}),
    "tx-lost": Kind([uhd_tx, bench_both], lose_to_device, {"wire"}),
    "reordered": Kind(RECEIVERS, reorder, set()),
    "doubled": Kind(RECEIVERS, duplicate, set()),
    "socket": Kind(STALLED, tiny_socket, {"socket"}),
    "stopped": Kind(STALLED, stop_reader, {"program"}),
    "busy": Kind(STALLED, busy_neighbour, {"program"}),
    "radio": Kind(RECEIVERS, stall_radio, {"radio"}),
    "clock": Kind(RECEIVERS, jump_clock, {"radio"}),
    "reports": Kind(STALLED, lose_reports, {"wire"}),
    "queue": Kind([uhd_tx], short_queue, {"send_queue"}),
    "underflow": Kind([uhd_tx], stop_reader, {"program"}),
    "late": Kind([late], nothing, {"program"}),
    "late-command": Kind([late_command], nothing, {"program"}),
}
MACHINE = {"backlog": Kind([uhd_rx, gnuradio, ours], short_backlog, {"backlog"})}
# These have little to wait in, so that a pause of the reader is a loss.
SMALL = {"socket", "stopped", "busy", "reports"}


def draw_case(name, kind, seed):
    """One case; the same for the same seed."""
    draw = random.Random(seed)
    program = draw.choice(kind.programs)
    mtu = draw.choice([1500, 9000])
    rate = draw.choice([1_000_000, 2_000_000, 4_000_000])
    small = name in SMALL
    buffer = draw.randrange(150_000, 500_000) if small else 0
    radio_buffer = rate // 10 if small or name == "radio" else 4 * rate
    link = "udp" if name != "wire" and draw.random() < 0.5 else "udp:gso=off"
    return Setting(name, program, rate, mtu, link, buffer, radio_buffer, draw)


def flowing():
    """Whether the stream has begun: so many bytes crossed the interface."""
    with open("/proc/net/dev", encoding="ascii") as lines:
        fields = next(line for line in lines if line.strip().startswith("peer0:")).split(":")[1].split()
    return int(fields[0]) + int(fields[8])


def run_case(case, kind, neighbour, options, folder):
    """Runs a case: its truth, the account of the near capture, and the watcher's document."""
    snaplen = 0 if case.link == "udp" else 128
    namespace.ip("link", "set", "peer0", "mtu", str(case.mtu))
    subprocess.run([*neighbour.inside(), "sh", "-c", f"ip link set device0 mtu {case.mtu}; "
                    "tc qdisc del dev device0 root; tc qdisc add dev device0 root handle 1: htb"],
                   check=True, stderr=subprocess.DEVNULL)
    udp, backlog, begin = watching.udp_counters(), watching.backlog_dropped(), flowing()
    radio = Radio("--rx-antenna", "ramp", "--mtu", str(case.mtu), "--control", CONTROL, "--link", case.link,
                  "--rx-buffer-samples", str(case.radio_buffer), addr=RADIO, inside=neighbour.inside())
    paths = {side: os.path.join(folder, f"{side}.pcap") for side in ("near", "far")}
    with radio:
        near = Capture("peer0", paths["near"], snaplen)
        far = Capture("device0", paths["far"], snaplen, neighbour.inside())
        with open(os.path.join(folder, "program.log"), "w+", encoding="utf-8") as log:
            prefix = [os.path.join(ROOT, "peers/roots.sh"), options.uhd] if options.uhd else []
            process = subprocess.Popen([*prefix, *case.program(case)], stdout=log, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
            watcher = Watcher(process.pid, case, folder) if options.watch else None
            eventually("the stream begins", lambda: process.poll() is not None
                       or flowing() - begin > BEGUN_BYTES, 40)
            running = Running(case, process, neighbour)
            running.queue_dropped = 0
            if process.poll() is None:
                kind.fault(running)
            if case.program is soapy:
                # It has no end of its own.
                time.sleep(SECONDS)
                process.send_signal(signal.SIGINT)
            status = process.wait(60)
            if status and case.program not in (late_command, soapy):
                raise Void(f"{case.program.__name__} ended with {status}")
            seen = watcher.end() if watcher else None
        faults = json.loads(subprocess.run(
            [MILLSTREAM, "sim", "--json", "fault", CONTROL, "list"], capture_output=True, text=True,
            check=True).stdout)
        near.end()
        far.end()
    truth = Truth(case.kind, near, far, radio.counters, faults)
    truth.socket = watching.udp_counters()["RcvbufErrors"] - udp["RcvbufErrors"]
    truth.queue = running.queue_dropped
    truth.backlog = watching.backlog_dropped() - backlog if case.kind == "backlog" else 0
    account = json.loads(subprocess.run([MILLSTREAM, "inspect", "--json", paths["near"]],
                                        capture_output=True, text=True, check=True).stdout)["results"]
    return truth, account, seen


class Watcher:
    """`millstream watch` beside a program: with its number, or with nothing, so that it has to find it."""

    def __init__(self, pid, case, folder):
        self.errors = os.path.join(folder, "watch.log")
        how = ["--pid", str(pid)] if case.draw.random() < 0.7 else []
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen([MILLSTREAM, "watch", "--json", *how], stdout=subprocess.PIPE,
                                            stderr=errors, stdin=subprocess.DEVNULL, text=True,
                                            preexec_fn=die_with_parent)

    def end(self):
        """Its document: it ends by itself, as the program has ended."""
        try:
            said = self.process.communicate(timeout=10)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Wrong("watch does not end, although the program has ended") from None
        if self.process.returncode != 0:
            with open(self.errors, encoding="utf-8") as errors:
                raise Wrong(f"watch ended with {self.process.returncode}: {errors.read()}")
        return json.loads(said)["results"]


class Truth:
    """What was lost where, by both captures and by counters."""

    def __init__(self, kind, near, far, counters, faults):
        self.kind = kind
        self.near = {key: Numbered(packets) for key, packets in near.flows().items()}
        self.far = {key: Numbered(packets) for key, packets in far.flows().items()}
        self.counters, self.faults = counters, faults
        self.socket = self.queue = self.backlog = 0

    def hits(self, *words):
        """How often faults of the emulator struck whose text begins so."""
        found = self.faults["results"]["faults"]
        return sum(fault["hit"] for fault in found if fault["fault"].startswith(" ".join(words)))

    def missing(self, from_radio):
        """Packets that are missing in the numbers at the program's interface."""
        return sum(count for key, flow in self.near.items() if key[0].startswith(RADIO) == from_radio
                   for _, count in flow.missing())

    def hops(self):
        """Each hop that lost something: how many packets, or events."""
        counters, found = self.counters, collections.Counter()
        found["backlog"] = self.backlog
        found["wire"] = self.missing(True) - self.backlog + self.hits("lose to_device data")
        found["socket"] = self.socket
        found["send_queue"] = self.missing(False)
        stalled = counters["rx_overruns"] - counters["rx_overruns_own"]
        found["wire" if self.hits("lose to_device status") else "program"] += stalled
        found["program"] += sum(counters[name] for name in ("tx_underflows", "tx_late_packets", "rx_late_commands"))
        found["radio"] = counters["rx_overruns_own"] + self.hits("clock_jump")
        return +found

    def disagreements(self, account):
        """Where the account of the near capture is wrong."""
        ours = {(flow["source"], flow["destination"], flow["epid"]): (number, flow)
                for number, flow in enumerate(account["flows"])}
        if set(ours) != set(self.near):
            yield f"flows {sorted(ours)}, not {sorted(self.near)}"
        for key, flow in self.near.items():
            number, said = ours.get(key, (None, None))
            if said is None:
                continue
            gaps = [gap for gap in account["gaps"] if gap["flow"] == number]
            yield from flow_disagreements(key, flow, said, gaps)
        told = sum(one["event"] == "overrun" for one in account["messages"])
        if told != self.counters["rx_overruns"]:
            yield f"{told} overruns, the radio counted {self.counters['rx_overruns']}"
        # The last ones may be lost with nothing behind them.
        behind = sum(gap["packets"] for gap in account["gaps"] if gap["place"] == "behind")
        hits = self.hits("lose to_device data")
        if not hits - 3 <= behind <= hits:
            yield f"{behind} packets behind the capture, the radio lost {hits}"


def flow_disagreements(key, flow, said, gaps):
    """The same for one flow."""
    packets = list(flow.by_number.values())
    for name, want in [("packets", len(packets) + flow.duplicates), ("duplicates", flow.duplicates),
                       ("reordered", flow.reordered), ("bursts", sum(packet.ends for packet in packets)),
                       ("lost_before", sum(count for _, count in flow.missing()))]:
        if said[name] != want:
            yield f"{key}: {said[name]} {name}, not {want}"
    before = [gap["packets"] for gap in gaps if gap["place"] == "before"]
    holes = [count for _, count in flow.missing()]
    if before != holes:
        yield f"{key}: gaps of {before} packets, not {holes}"
    not_sent = [gap["samples"] for gap in gaps if gap["place"] == "sender" and not gap["overrun"]]
    jumps = [jump for _, jump, ends in flow.jumps(1) if not ends and jump > 0]
    if len(holes) == 0 and not_sent != jumps:
        yield f"{key}: {not_sent} samples not sent, not {jumps}"
    overruns = [gap["samples"] for gap in gaps if gap["overrun"]]
    ended = [jump for _, jump, ends in flow.jumps(1) if ends]
    if len(holes) == 0 and not collections.Counter(overruns) <= collections.Counter(ended):
        yield f"{key}: overruns of {overruns} samples, times jump by {ended}"


def judged(truth, losses):
    """A word for the watcher's verdicts, and what is not right with them."""
    lost, said, word = truth.hops(), collections.Counter(), "right"
    problems, named, between = [], set(), set()
    for loss in losses:
        if loss["kind"] == "not_captured":
            continue
        reach = HOPS[HOPS.index(loss["hop"]):HOPS.index(loss["until"]) + 1]
        said[loss["hop"]] += loss["packets"]
        between.update(reach)
        if loss["certainty"] != "between":
            named.add(loss["hop"])
        if not set(reach) & set(lost):
            how = "perhaps" if loss["certainty"] == "perhaps" else "wrong"
            problems.append((how, f"{loss['certainty']} {loss['hop']} to {loss['until']}: {loss['kind']} "
                             f"{loss['packets']} packets: {' '.join(loss['evidence'])}"))
    for hop, count in lost.items():
        if hop not in named:
            problems.append(("perhaps" if hop in between else "not found", f"{count} at {hop}"))
        elif hop in COUNTED and said[hop] != count and "reports" not in truth.kind:
            problems.append(("count", f"{said[hop]} at {hop}, not {count}"))
    for how in ("perhaps", "count", "not found", "wrong"):
        word = how if any(one == how for one, _ in problems) else word
    return word, [f"{how}: {what}" for how, what in problems]


def main():
    """All cases, then the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--case", type=int, help="the number of one case, as the output shows it")
    parser.add_argument("--uhd")
    parser.add_argument("--keep", help="folder for what was seen of each wrong case")
    options = parser.parse_args()
    if os.geteuid() != 0:
        skip("network namespaces that are joined, and captures, need root")
    for program, package in [("tcpdump", "tcpdump"), ("tc", "iproute2"), ("ss", "iproute2"),
                             ("uhd_rx_cfile", "gnuradio"), ("SoapySDRUtil", "soapysdr-tools")]:
        if shutil.which(program) is None:
            skip(f"no {program} (Debian package {package})")
    if not os.access(MILLSTREAM, os.X_OK):
        skip(f"no {MILLSTREAM} (run make build)")
    uhd_example("rx_samples_to_file")
    namespace.enter()
    os.environ["SOAPY_SDR_PLUGIN_PATH"] = os.environ.get("MILLSTREAM_SOAPY") or os.path.dirname(MILLSTREAM)
    chosen = {name: kind for name, kind in {**KINDS, **MACHINE}.items()
              if name in (options.only.split(",") if options.only else KINDS)}
    if not chosen:
        sys.exit(f"--only: no kind {options.only}: there are {', '.join({**KINDS, **MACHINE})}")
    count = 1 if options.case else options.cases or (SHORT_CASES if SHORT else len(chosen))
    # A program of ours that is older than this script has no such verb.
    options.watch = subprocess.run([MILLSTREAM, "watch", "--help"], capture_output=True, check=False).returncode == 0
    if not options.watch:
        print(f"{MILLSTREAM} has no verb watch: the account only")
    draw, table, begin = random.Random(options.seed), collections.defaultdict(collections.Counter), time.monotonic()
    names = list(chosen)
    with tempfile.TemporaryFile("w+") as log, \
            namespace.Neighbour(["sleep", str(LIMIT_S)], HOST, RADIO, log, mtu=9000) as neighbour:
        for number in range(count):
            name = names[number % len(names)] if not SHORT else draw.choice(names)
            program, word = tried(name, chosen[name], draw, neighbour, options)
            table[name, program][word] += 1
    sys.exit(0 if summed(table, (time.monotonic() - begin) / count) else 1)


def summed(table, seconds):
    """Prints the table; whether the watcher is good enough."""
    total = sum(table.values(), collections.Counter())
    print(f"{'kind':<14}{'program':<14}" + "".join(f"{word:>11}" for word in WORDS))
    for (kind, program), counts in sorted(table.items()):
        print(f"{kind:<14}{program:<14}" + "".join(f"{counts[word] or '':>11}" for word in WORDS))
    share = total["right"] / total.total()
    print(f"{total.total()} cases, {seconds:.1f} s each: {share:.1%} right, "
          + ", ".join(f"{total[word]} {word}" for word in WORDS[1:]))
    return share >= RIGHT_SHARE and not total["wrong"]


def tried(name, kind, draw, neighbour, options):
    """One case, again while the harness itself fails: the program and the word for the watcher."""
    for _ in range(VOID_MAX):
        seed = options.case or draw.randrange(1 << 30)
        case = draw_case(name, kind, seed)
        with contextlib.ExitStack() as stack:
            folder = options.keep and os.path.join(options.keep, f"{name}-{seed}")
            if folder:
                os.makedirs(folder, exist_ok=True)
            else:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
            what = (f"{name} {case.program.__name__} {case.rate / 1e6:g} MS/s MTU {case.mtu} {case.link}"
                    f" (--only {name} --case {seed})")
            try:
                truth, account, seen = run_case(case, kind, neighbour, options, folder)
            except Wrong as wrong:
                print(f"{what}\n    wrong: {wrong}", flush=True)
                return case.program.__name__, "wrong"
            except (Void, RuntimeError, subprocess.SubprocessError, OSError, SystemExit) as void:
                print(f"{what}: drawn again: {void!r}", flush=True)
                continue
        word, problems = judged(truth, seen["losses"]) if seen else ("right", [])
        # What the watcher's own capture missed is missing in its account.
        accounts = [account, seen] if seen and not seen["missed_by_capture"] else [account]
        wrong = [f"wrong: {one}" for account in accounts for one in truth.disagreements(account)]
        word = "wrong" if wrong else word
        if options.keep and word == "right":
            shutil.rmtree(folder)
        print(f"{what}: {word}, {dict(truth.hops())}" + "".join(f"\n    {one}" for one in problems + wrong), flush=True)
        return case.program.__name__, word
    sys.exit(f"{name}: {VOID_MAX} cases in a row could not be run")


if __name__ == "__main__":
    main()
