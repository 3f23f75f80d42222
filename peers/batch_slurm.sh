#!/usr/bin/env bash
# Slurm runs a batch: slurmctld and slurmd on this machine, in namespaces that end with this script. A job of
# `batch run --engine slurm` makes the same files as `batch run`, and a task with a truncated recording fails alone.
# Exit status: 0 it does, 1 it does not, 77 skipped (no root, or a program is not there).
set -uo pipefail
PATH=$PATH:/usr/sbin
if [ -z "${MILLSTREAM_PEER_INSIDE:-}" ]; then
  . "$(dirname "$0")/lib.sh"
  need slurmctld slurmctld
  need slurmd slurmd
  need sbatch slurm-client
  need munged munge
  [ "$(id -u)" -eq 0 ] || { echo "skipped: slurmd needs root"; exit 77; }
  [ -x "$MILLSTREAM" ] || { echo "skipped: no $MILLSTREAM (run make build)"; exit 77; }
  unshare --mount --pid --fork --kill-child --mount-proc true 2>/dev/null ||
    { echo "skipped: namespaces cannot be made here"; exit 77; }
  export MILLSTREAM_PEER_INSIDE=yes ROOT MILLSTREAM WORK
  unshare --mount --pid --fork --kill-child --mount-proc bash "$0"
  exit
fi

fail() {
  echo "FAILED: $*" >&2
  tail -n 20 "$WORK"/*.log >&2
  exit 1
}

host=$(cat /proc/sys/kernel/hostname)
host=${host%%.*}
cd "$WORK" || exit 1
mkdir state spool
head -c 1024 /dev/urandom >key
chmod 600 key
cat >slurm.conf <<END
ClusterName=millstream
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$WORK/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation=$WORK/state
SlurmdSpoolDir=$WORK/spool
SlurmctldPidFile=$WORK/slurmctld.pid
SlurmdPidFile=$WORK/slurmd.pid
SlurmctldLogFile=$WORK/slurmctld.log
SlurmdLogFile=$WORK/slurmd.log
SlurmctldPort=46817
SlurmdPort=46818
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$WORK/slurm.conf
munged --force --socket="$WORK/munge" --key-file="$WORK/key" --pid-file="$WORK/munged.pid" \
  --log-file="$WORK/munged.log" --seed-file="$WORK/seed" || fail "munged does not start"
slurmctld || fail "slurmctld does not start"
slurmd || fail "slurmd does not start"
for _ in $(seq 300); do
  sinfo --noheader --format=%t 2>/dev/null | grep -qx idle && break
  sleep 0.2
done
sinfo --noheader --format=%t | grep -qx idle || fail "the node is not idle within a minute"

mkdir here there
for number in $(seq 100 199); do head -c $((80000 + 8 * number)) /dev/urandom >"here/r$number.cf32"; done
head -c 801 /dev/urandom >here/r200.cf32
cp -p here/r*.cf32 there
for folder in here there; do
  printf 'graph = "%s"\nrecordings = ["r*.cf32"]\n[outputs]\nout = "rows.f32"\n[sweep]\nsize = [256, 512]\n' \
    "$ROOT/graphs/spectrum.toml" >"$folder/b.toml"
done
"$MILLSTREAM" batch run here/b.toml 2>/dev/null && fail "a truncated recording passes"
"$MILLSTREAM" batch run there/b.toml --engine slurm --workers 2 || fail "the job is not accepted"
for _ in $(seq 1200); do
  jobs=$(squeue --noheader) && [ -z "$jobs" ] && break
  sleep 0.2
done
jobs=$(squeue --noheader) || fail "squeue does not answer"
[ -z "$jobs" ] || fail "the job has not ended within four minutes"
for folder in here there; do
  (cd "$folder/b.results/done" && sha256sum ./*/rows.f32) >"$folder.sums"
done
cmp here.sums there.sums || fail "Slurm's results are others"
[ "$(wc -l <there.sums)" = 200 ] || fail "$(wc -l <there.sums) results, not 200"
[ "$(find there/b.results/failed -name '*.json' | wc -l)" = 2 ] || fail "not the two tasks of r200.cf32 failed"
echo "agrees: $(sinfo --version): 200 results of an array job are those of batch run, 2 tasks failed alone"
