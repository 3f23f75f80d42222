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
       watch_faults.py --cost PAIRS    what watching costs the program and the machine
KIND `backlog` changes net.core.netdev_max_backlog of the whole machine for seconds: only with --only.
Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import namespace
import watching
from common import (LIMIT_S, MILLSTREAM, PYTHON, ROOT, SHORT, Radio, beside, die_with_parent,
                    skip, uhd_example)
from watching import Capture, Truth, Void, judged

HOST, RADIO, CONTROL = "10.77.0.1", "10.77.0.2", "10.77.0.2:5555"
ARGS = f"addr={RADIO}"
SECONDS, BEGUN_BYTES = 3.0, 2_000_000
RIGHT_SHARE, SHARE_CASES = 0.98, 50
BACKLOG_FILE = "MILLSTREAM_PEER_BACKLOG"
BACKLOG = "/proc/sys/net/core/netdev_max_backlog"
# A case whose harness failed is drawn again, so often in a row.
VOID_MAX = 8
SHORT_CASES = 5
# What is wrong with a case, so many lines of it.
SHOWN = 4
WORDS = ["right", "perhaps", "count", "not found", "wrong"]

Kind = collections.namedtuple("Kind", "programs fault hop")


class Wrong(Exception):
    """The watcher itself fails."""


Setting = collections.namedtuple("Setting", "kind program rate mtu link buffer radio_buffer joins draw")


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


# UHD's Python API, with a new stream every half second.
REOPENING = """
import sys, numpy, uhd
radio, rate, seconds = uhd.usrp.MultiUSRP(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
radio.set_rx_rate(rate)
for turn in range(int(2 * seconds)):
    options = uhd.usrp.StreamArgs("sc16", "sc16")
    options.channels = [0]
    stream = radio.get_rx_stream(options)
    command = uhd.types.StreamCMD(uhd.types.StreamMode.start_cont)
    command.stream_now = True
    stream.issue_stream_cmd(command)
    buffer, got = numpy.zeros((1, 10000), dtype=numpy.int32), 0
    while got < rate / 2:
        got += stream.recv(buffer, uhd.types.RXMetadata(), 1.0)
    stream.issue_stream_cmd(uhd.types.StreamCMD(uhd.types.StreamMode.stop_cont))
    del stream
"""


def uhd_reopening(case):
    return [PYTHON, "-c", REOPENING, uhd_args(case), str(case.rate), str(SECONDS)]


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

    def __init__(self, case, process, neighbour, socket_dropped):
        self.case, self.process, self.neighbour = case, process, neighbour
        # Before it began.
        self.socket_dropped = socket_dropped

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
    if running.case.program is not uhd_reopening:
        # It has all its sockets still.
        watching.check_socket_drops(running.socket_dropped)


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
    draw = running.case.draw
    rate = int(running.case.rate * 32 * draw.uniform(0.5, 0.9))
    limit = draw.randrange(20_000, 60_000)
    for rate, limit, seconds in [(rate, limit, draw.uniform(0.1, 0.3)), (10**10, 10**8, 0)]:
        subprocess.run(["tc", "qdisc", "replace", "dev", "peer0", "root", "tbf", "rate", str(rate), "burst",
                        "20000", "limit", str(limit)], check=True)
        time.sleep(seconds)


def short_backlog(running):
    """Another CPU takes the packets on, and its backlog keeps a few. It is a setting of the whole machine."""
    cpus = f"{1 << max(os.sched_getaffinity(0)):x}"
    spread = f"mount -t sysfs none /sys && echo {cpus} >/sys/class/net/peer0/queues/rx-0/rps_cpus"
    subprocess.run(["unshare", "--mount", "sh", "-c", spread], check=True)
    # It comes back when our end of the pipe is gone, however we end.
    change = ("import os, sys; setting = int(sys.argv[1]); before = os.pread(setting, 20, 0); "
              "os.pwrite(setting, sys.argv[2].encode(), 0); sys.stdin.read(); os.pwrite(setting, before, 0)")
    setting = os.environ[BACKLOG_FILE]
    with subprocess.Popen([PYTHON, "-c", change, setting, str(running.case.draw.randrange(1, 9))],
                          stdin=subprocess.PIPE, pass_fds=[int(setting)]) as held:
        # Behind a pause the radio sends what is due at once.
        running.emulator("stall", f"ms={running.case.draw.randrange(30, 100)}")
        time.sleep(0.3)
        held.stdin.close()


def open_backlog():
    """Opens the setting before this peer enters its own network, where there is no such."""
    if BACKLOG_FILE not in os.environ:
        try:
            setting = os.open(BACKLOG, os.O_RDWR)
        except OSError as error:
            skip(f"{BACKLOG}: {error.strerror}; only the first network namespace has it")
        os.set_inheritable(setting, True)
        os.environ[BACKLOG_FILE] = str(setting)


RECEIVERS = [uhd_rx, bench_rx, bench_two, uhd_reopening, gnuradio, soapy, ours]
# With the UHD of another Debian (roots.sh).
OF_UHD = {uhd_rx, uhd_reopening, bench_rx, bench_two, bench_both, uhd_tx, late, late_command}
STALLED = [uhd_rx, bench_rx, gnuradio, ours]
KINDS = {
    "healthy": Kind([*RECEIVERS, uhd_tx, bench_both], nothing, None),
    "lost": Kind([*RECEIVERS, bench_both], lose_to_host, "wire"),
    "burst-lost": Kind(RECEIVERS, lose_burst, "wire"),
    "wire": Kind(RECEIVERS, lose_on_wire, "wire"),
    "tx-lost": Kind([uhd_tx, bench_both], lose_to_device, "wire"),
    "reordered": Kind(RECEIVERS, reorder, None),
    "doubled": Kind(RECEIVERS, duplicate, None),
    "socket": Kind([*STALLED, uhd_reopening], tiny_socket, "socket"),
    "stopped": Kind(STALLED, stop_reader, "program"),
    "busy": Kind(STALLED, busy_neighbour, "program"),
    "radio": Kind(RECEIVERS, stall_radio, "radio"),
    "clock": Kind(RECEIVERS, jump_clock, "radio"),
    "reports": Kind(STALLED, lose_reports, "wire"),
    "queue": Kind([uhd_tx], short_queue, "send_queue"),
    "underflow": Kind([uhd_tx], stop_reader, "program"),
    "late": Kind([late], nothing, "program"),
    "late-command": Kind([late_command], nothing, "program"),
}
MACHINE = {"backlog": Kind([uhd_rx, gnuradio, ours], short_backlog, "backlog")}
# These have little to wait in, so that a pause of the reader is a loss.
SMALL = {"socket", "stopped", "busy", "reports"}


def draw_case(name, kind, seed, uhd):
    """One case; the same for the same seed."""
    draw = random.Random(seed)
    program = draw.choice([one for one in kind.programs if not uhd or one in OF_UHD])
    mtu = 1500 if name == "backlog" else draw.choice([1500, 9000])
    rate = draw.choice([1_000_000, 2_000_000, 4_000_000])
    small = name in SMALL
    buffer = draw.randrange(150_000, 500_000) if small else 0
    radio_buffer = rate // 10 if small or name == "radio" else 4 * rate
    # The kernel drops a train as one packet.
    link = "udp" if name not in ("wire", "backlog") and draw.random() < 0.5 else "udp:gso=off"
    # Whoever looks begins when the stream has begun.
    joins = not name.startswith("late") and draw.random() < 0.3
    return Setting(name, program, rate, mtu, link, buffer, radio_buffer, joins, draw)


def flowing():
    """Whether the stream has begun: so many bytes crossed the interface."""
    with open("/proc/net/dev", encoding="ascii") as lines:
        fields = next(line for line in lines if line.strip().startswith("peer0:")).split(":")[1].split()
    return int(fields[0]) + int(fields[8])


def children_s():
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wait_for_stream(case, process, begin):
    """Waits until a stream has begun, or until the program ends; one with late commands has no stream."""
    end = time.monotonic() + 15
    while process.poll() is None and flowing() - begin < BEGUN_BYTES:
        if time.monotonic() > end:
            if case.program is late_command:
                return
            raise Void("no stream begins")
        time.sleep(0.05)


def run_case(case, kind, neighbour, options, folder):
    """Runs a case: its truth, the account of the near capture, and the watcher's document."""
    snaplen = 0 if case.link == "udp" else 128
    namespace.ip("link", "set", "peer0", "mtu", str(case.mtu))
    subprocess.run(["tc", "qdisc", "del", "dev", "peer0", "root"], stderr=subprocess.DEVNULL, check=False)
    subprocess.run([*neighbour.inside(), "sh", "-c", f"ip link set device0 mtu {case.mtu}; "
                    "tc qdisc del dev device0 root; tc qdisc add dev device0 root handle 1: htb"],
                   check=True, stderr=subprocess.DEVNULL)
    socket_dropped, begin = watching.udp_counters()["RcvbufErrors"], flowing()
    # A radio of its own does not wait for the program's CPU.
    apart = sorted(os.sched_getaffinity(0))[:-1] if case.kind == "busy" else []
    where = [*neighbour.inside(), *(["taskset", "-c", ",".join(map(str, apart))] if apart else [])]
    radio = Radio("--rx-antenna", "ramp", "--mtu", str(case.mtu), "--control", CONTROL, "--link", case.link,
                  "--rx-buffer-samples", str(case.radio_buffer), addr=RADIO, inside=where)
    paths = {side: os.path.join(folder, f"{side}.pcap") for side in ("near", "far")}
    with radio:
        if not case.joins:
            near = Capture("peer0", paths["near"], snaplen)
        far = Capture("device0", paths["far"], snaplen, neighbour.inside())
        spent_s = children_s()
        with open(os.path.join(folder, "program.log"), "w+", encoding="utf-8") as log:
            prefix = [os.path.join(ROOT, "peers/roots.sh"), options.uhd] if options.uhd else []
            process = subprocess.Popen([*prefix, *case.program(case)], stdout=log, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
            watcher = Watcher(process.pid, case, neighbour, folder) if options.watch and not case.joins else None
            wait_for_stream(case, process, begin)
            if case.joins:
                near = Capture("peer0", paths["near"], snaplen)
                watcher = Watcher(process.pid, case, neighbour, folder) if options.watch else None
                # It says nothing when it has begun.
                time.sleep(0.5)
            if process.poll() is None:
                kind.fault(Running(case, process, neighbour, socket_dropped))
            try:
                status = process.wait(SECONDS if case.program is soapy else 4 * SECONDS)
            except subprocess.TimeoutExpired:
                # It has no end of its own, or waits for samples that do not come.
                process.send_signal(signal.SIGINT)
                process.wait(10)
                status = 0
            if status and case.program is not late_command:
                raise Void(f"{case.program.__name__} ended with {status}")
            # Of a healthy run no other child has ended since.
            program_s = children_s() - spent_s
            seen = watcher.end() if watcher else None
            queue_dropped = watching.queue_dropped("peer0")
        faults = json.loads(subprocess.run(
            [MILLSTREAM, "sim", "--json", "fault", CONTROL, "list"], capture_output=True, text=True,
            check=True).stdout)
        near.end()
        far.end()
    if options.keep:
        with open(os.path.join(folder, "radio.json"), "w", encoding="utf-8") as file:
            json.dump({"counters": radio.counters, "faults": faults["results"], "watch": seen}, file, indent=1)
    truth = Truth(near, far, radio.counters, faults, case.joins)
    truth.socket = watching.udp_counters()["RcvbufErrors"] - socket_dropped
    truth.program_s = program_s
    truth.queue_tail = queue_dropped - truth.missing(False)
    if truth.queue_tail < 0:
        raise Void(f"{truth.missing(False)} packets of the program are missing, tc counts {queue_dropped} dropped")
    return truth, inspect(paths["near"]), seen, watcher and list(differences(seen, watcher.later()))


# Shares of a core that watchers took.
COST = []


class Watcher:
    """`millstream watch` beside a program: in its network or another, with its number or without."""

    def __init__(self, pid, case, neighbour, folder):
        self.errors, self.began = os.path.join(folder, "watch.log"), time.monotonic()
        self.recording = os.path.join(folder, "watch.pcapng")
        # A program without a stream is found by its number only.
        ways = {"pid": [[], ["--pid", str(pid)]], "elsewhere": [neighbour.inside(), ["--pid", str(pid)]],
                "interface": [[], ["--interface", "peer0"]]}
        self.way = "pid" if case.kind == "late-command" else case.draw.choice([*ways, "pid"])
        inside, how = ways[self.way]
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [*inside, MILLSTREAM, "watch", "--json", "--force", "--record", self.recording, *how], stdout=subprocess.PIPE,
                stderr=errors, stdin=subprocess.DEVNULL, text=True, preexec_fn=die_with_parent)

    def end(self):
        """Its document: it ends by itself, as the program has ended."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        COST.append(cpu_s / (time.monotonic() - self.began))
        try:
            said = self.process.communicate(timeout=10)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Wrong(f"watch ({self.way}) does not end, although the program has ended") from None
        if self.process.returncode != 0:
            with open(self.errors, encoding="utf-8") as errors:
                raise Wrong(f"watch ended with {self.process.returncode}: {errors.read()}")
        return {**json.loads(said)["results"], "way": self.way}

    def later(self):
        """The account of what it has recorded."""
        return inspect(self.recording)


def inspect(path):
    """The account of a capture."""
    done = subprocess.run([MILLSTREAM, "inspect", "--json", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"inspect of {path} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["results"]


def differences(live, later):
    """Where the account of a recording is not the one that was made live."""
    for name in ("flows", "gaps", "messages", "losses"):
        # The words of a loss have values that a live watcher knew less well; losses of one moment have no order.
        both = [sorted(json.dumps({key: value for key, value in one.items() if key not in ("evidence", "remedies")})
                       for one in account[name]) for account in (live, later)]
        if both[0] != both[1]:
            at = next((pair for pair in zip(*both) if pair[0] != pair[1]), "their number")
            yield f"{name} of the recording: {len(later[name])}, live {len(live[name])}; {at}"


def main():
    """All cases, then the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--case", type=int, help="the number of one case, as the output shows it")
    parser.add_argument("--uhd")
    parser.add_argument("--cost", type=int, metavar="PAIRS")
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
    if "backlog" in options.only:
        open_backlog()
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
        if options.cost:
            compared(options.cost, neighbour, options)
            return
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
    if COST:
        print(f"watch took {statistics.median(COST):.1%} of a core, at most {max(COST):.1%}")
    share = total["right"] / total.total()
    print(f"{total.total()} cases, {seconds:.1f} s each: {share:.1%} right, "
          + ", ".join(f"{total[word]} {word}" for word in WORDS[1:]))
    # Of few cases a share says nothing.
    return (share >= RIGHT_SHARE or sum(total.values()) < SHARE_CASES) and not total["wrong"]


def compared(pairs, neighbour, options):
    """The same healthy run with a watcher and without one, by turns: what it costs the program."""
    taken, lost = {True: [], False: []}, collections.Counter()
    case = Setting("healthy", uhd_rx, 4_000_000, 1500, "udp:gso=off", 0, 16_000_000, False, random.Random(1))
    while len(taken[True]) < pairs or len(taken[False]) < pairs:
        options.watch = len(taken[True]) < len(taken[False]) or (
            len(taken[True]) == len(taken[False]) and len(taken[True]) % 2 == 0)
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Void):
            truth = run_case(case, KINDS["healthy"], neighbour, options, folder)[0]
            taken[options.watch].append(truth.program_s)
            lost[options.watch] += sum(truth.hops().values())
    for watched, what in [(True, "watched"), (False, "alone  ")]:
        print(f"{what}: CPU time of the program {statistics.median(taken[watched]):.3f} s "
              f"({min(taken[watched]):.3f} to {max(taken[watched]):.3f}), lost {lost[watched]}")
    print(f"{pairs} pairs of {SECONDS:g} s at 4 MS/s, MTU 1500: watch took {statistics.median(COST):.1%} of a core")


def tried(name, kind, draw, neighbour, options):
    """One case, again while the harness itself fails: the program and the word for the watcher."""
    for _ in range(VOID_MAX):
        seed = options.case or draw.randrange(1 << 30)
        case = draw_case(name, kind, seed, options.uhd)
        with contextlib.ExitStack() as stack:
            folder = options.keep and os.path.join(options.keep, f"{name}-{seed}")
            if folder:
                os.makedirs(folder, exist_ok=True)
            else:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
            what = (f"{name} {case.program.__name__} {case.rate / 1e6:g} MS/s MTU {case.mtu} {case.link}"
                    f"{' joined' if case.joins else ''} (--only {name} --case {seed})")
            try:
                truth, account, seen, differing = run_case(case, kind, neighbour, options, folder)
                if kind.hop and not truth.hops()[kind.hop]:
                    raise Void(f"the fault took nothing at {kind.hop}: {dict(truth.hops())}")
            except Wrong as wrong:
                print(f"{what}: wrong\n    wrong: {wrong}", flush=True)
                return case.program.__name__, "wrong"
            except (Void, RuntimeError, subprocess.SubprocessError, OSError, SystemExit) as void:
                print(f"{what}: drawn again: {void!r}", flush=True)
                continue
        word, problems = judged(truth, seen["losses"]) if seen else ("right", [])
        # What the watcher's own capture missed, or began too late for, is missing in its account.
        # The radio sends on for a while to a program that a signal has ended.
        is_whole = seen and not seen["missed_by_capture"] and not case.joins and case.program is not soapy
        accounts = [(account, False)] + ([(seen, case.link == "udp")] if is_whole else [])
        wrong = [f"wrong: {one}" for account, is_cut in accounts for one in truth.disagreements(account, is_cut)]
        wrong += [f"wrong: {one}" for one in differing or ()]
        word = "wrong" if wrong else word
        if options.keep and word == "right":
            shutil.rmtree(folder)
        problems += wrong
        print(f"{what}: {word}, {dict(truth.hops())}" + "".join(f"\n    {one}" for one in problems[:SHOWN])
              + (f"\n    and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""), flush=True)
        return case.program.__name__, word
    sys.exit(f"{name}: {VOID_MAX} cases in a row could not be run")


if __name__ == "__main__":
    main()
