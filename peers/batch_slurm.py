#!/usr/bin/env python3
"""Peer: Slurm. slurmctld, slurmd and munged run in namespaces of their own, with their files in memory, and end with this
script, whichever way it ends; no service of this machine is used. An array job of `batch run --engine slurm` makes the
same files as `batch run`, although workers are killed at drawn moments; an element has as many threads as Slurm gave it
CPUs. MILLSTREAM_TASKS and MILLSTREAM_KILLS give other numbers of tasks and kills (200 and 8; run-all.sh: 60 and 2).
MILLSTREAM_SLURM names a folder with the unpacked packages (dpkg -x), where Slurm is not installed.
Exit status: 0 all that, 1 not, 77 skipped (no root, or a program is not there)."""

import json
import os
import pathlib
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time

import common

# Within the limit of run-all.sh there is time for fewer tasks than on their own.
LIMIT_S = common.LIMIT_S
if LIMIT_S < 1000:
    os.environ.setdefault("MILLSTREAM_TASKS", "60")
from batch_common import check_streams, copy, failed, run_here, sums, SETTINGS_COUNT, TASKS

INSIDE = "MILLSTREAM_PEER_SLURM"
PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "sinfo": "slurm-client",
            "squeue": "slurm-client", "munged": "munge", "ip": "iproute2"}
KILLS = int(os.environ.get("MILLSTREAM_KILLS", str(max(2, TASKS // 25))))
# Its own end comes before that by run-all.sh.
END = time.monotonic() + LIMIT_S - 20
# Folders over one of which this peer lays its own, for its own processes only.
PLACES = ["/mnt", "/media", "/srv", "/run"]
CONFIGURATION = """ClusterName=millstream
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={work}/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/spool
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/slurmd.pid
SlurmctldLogFile={work}/slurmctld.log
SlurmdLogFile={work}/slurmd.log
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def enter():
    """Runs this peer again in namespaces for mounts, processes and the network: what it starts ends with it."""
    if os.geteuid() != 0:
        common.skip("slurmd needs root")
    names = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if shutil.which("unshare") is None:
        common.skip("no unshare (Debian package util-linux)")
    if subprocess.run([*names, "true"], capture_output=True, check=False).returncode != 0:
        common.skip("namespaces cannot be made here")
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*names, sys.executable, *sys.argv])


def own_folder():
    """A folder in memory that only the processes of this peer see, and that is gone with them."""
    used = [common.ROOT, common.MILLSTREAM, os.environ.get("MILLSTREAM_SLURM", "/"), sys.executable]
    used = [pathlib.Path(path).resolve() for path in used]
    for place in map(pathlib.Path, PLACES):
        if place.is_dir() and not place.is_symlink() and all(place not in [path, *path.parents] for path in used):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", place], check=True)
            return place
    return common.skip(f"this peer lays a folder of its own over one of {', '.join(PLACES)}, and all are used or not there")


def unpacked(folder, links):
    """Lays the programs of a folder over those of this machine, for the processes of this peer."""
    (links / "sbin").mkdir(parents=True)
    for program in pathlib.Path(folder, "usr/sbin").glob("slurm*-wlm"):
        (links / "sbin" / program.name.removesuffix("-wlm")).symlink_to(program.name)
    layers = f"lowerdir={links}:{folder}/usr:/usr"
    subprocess.run(["mount", "-t", "overlay", "-o", layers, "overlay", "/usr"], check=True)


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def start(work):
    """Starts the daemons; returns when the node takes jobs."""
    host = os.uname().nodename.split(".")[0]
    for folder in ["state", "spool"]:
        (work / folder).mkdir()
    key = work / "key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o600)
    configuration = work / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(host=host, work=work, cpus=os.cpu_count()))
    os.environ["SLURM_CONF"] = str(configuration)
    munge = {"socket": "munge", "key-file": "key", "pid-file": "munged.pid", "log-file": "munged.log",
             "seed-file": "seed"}
    subprocess.run(["munged", "--force", *(f"--{name}={work / file}" for name, file in munge.items())], check=True)
    for daemon in ["slurmctld", "slurmd"]:
        subprocess.run([daemon], check=True)
    idle = ["sinfo", "--noheader", "--format=%t"]
    common.eventually("the node is idle", lambda: subprocess.run(idle, capture_output=True, text=True, check=False)
                      .stdout.strip() == "idle", pause_s=0.2)


def left_s():
    """The time that is left to wait."""
    return max(1, END - time.monotonic())


def submit(manifest, *options):
    command = [common.MILLSTREAM, "batch", "run", manifest, "--engine", "slurm", "--json", *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"the job is not accepted: {ran.stderr}")
    return json.loads(ran.stdout)["results"]


def is_over():
    return said("squeue", "--noheader") == ""


def workers():
    """The processes of `batch task`."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[1:3] == [b"batch", b"task"]:
            found.append(int(folder.name))
    return found


def kill_some(draw):
    """Kills workers at drawn moments while the job runs; returns how many."""
    killed = 0
    while killed < KILLS and not is_over() and left_s() > 1:
        time.sleep(draw.uniform(0.05, 2.0))
        there = workers()
        if not there:
            continue
        try:
            os.kill(draw.choice(there), signal.SIGKILL)
        except ProcessLookupError:
            continue
        killed += 1
    return killed


def threads(manifest):
    """The numbers of threads that the graphs of the results had."""
    found = set()
    for file in manifest.parent.glob("b.results/done/*/result.json"):
        blocks = json.loads(file.read_text())["results"]["run"]["blocks"]
        found.add(len({block["partition"] for block in blocks}))
    return found


def main():
    if not os.environ.get(INSIDE):
        enter()
    if os.getpid() != 1:
        sys.exit(f"{INSIDE} is set, and this is not the first process of a namespace: unset it")
    # The first process of a namespace is not ended by a signal that it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    if not os.access(common.MILLSTREAM, os.X_OK):
        common.skip(f"no {common.MILLSTREAM} (run make build)")
    work = own_folder()
    if os.environ.get("MILLSTREAM_SLURM"):
        unpacked(os.environ["MILLSTREAM_SLURM"], work / "usr")
    os.environ["PATH"] += ":/usr/sbin"
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            common.skip(f"no {program} (Debian package {package}; MILLSTREAM_SLURM names a folder with it unpacked)")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # Slurm opens no port on a machine whose only addresses are 127.x.
    subprocess.run(["ip", "addr", "add", "192.0.2.1/32", "dev", "lo"], check=True)
    try:
        start(work)
        compare(work)
    except BaseException:
        for log in work.glob("*.log"):
            print(f"{log.name}: {log.read_text(errors='replace')[-2000:]}", file=sys.stderr)
        raise


def compare(work):
    manifest, expected = run_here(work / "local")
    version = said("sinfo", "--version")
    there, wide = copy(manifest, "slurm"), copy(manifest, "wide")
    began = time.monotonic()
    tasks = len(submit(there, "--workers", "2")["open"])
    killed = kill_some(random.Random(int(os.environ.get("MILLSTREAM_SEED", "1"))))
    common.eventually("the job ends", is_over, patience_s=left_s(), pause_s=0.2)
    missing = len(expected) - len(sums(there))
    if killed < KILLS or not 0 < missing <= killed:
        sys.exit(f"{killed} workers were killed, and {missing} results are missing")
    again = submit(there)
    common.eventually("the job ends", is_over, patience_s=left_s(), pause_s=0.2)
    seconds = time.monotonic() - began
    if len(again["open"]) != missing + SETTINGS_COUNT:
        sys.exit(f"{len(again['open'])} tasks were submitted again, not {missing} and the {SETTINGS_COUNT} that fail")
    if sums(there) != expected:
        sys.exit(f"{version}: the results are others than those of `batch run`")
    if failed(there) != failed(manifest):
        sys.exit(f"{version}: other tasks failed: {failed(there)}")
    check_streams(there)
    if threads(there) != {1}:
        sys.exit(f"elements with one CPU have {threads(there)} threads")
    print(f"agrees: {version}: {tasks} tasks in {seconds:.1f} s, every file the same bit by bit; {killed} workers "
          f"killed, {missing} tasks submitted again; the {SETTINGS_COUNT} of the truncated recording failed alone")
    if os.cpu_count() < 2:
        return
    # Two CPUs an element: Slurm runs one at a time, and the graph has two threads.
    submit(wide, "--threads", "2")
    common.eventually("an element has ended", lambda: len(sums(wide)) >= 3, patience_s=left_s())
    if threads(wide) != {2}:
        sys.exit(f"elements with two CPUs have {threads(wide)} threads")
    print("agrees: an element has as many threads as Slurm gave it CPUs (1, 2)")


if __name__ == "__main__":
    main()
