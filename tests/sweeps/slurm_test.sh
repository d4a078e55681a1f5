#!/usr/bin/env bash
# The sbatch scripts of docs/slurm under a Slurm of our own on loopback: an array of shards of a
# sweep, and the merge after it. Usage: slurm_test.sh PROGRAM DOCS. Exits with 77 where it cannot be.
set -euo pipefail
program=$1 docs=$2

skip() {
  echo "skipped: sweeps under Slurm ($1); install slurm-wlm and munge to run it"
  exit 77
}
for tool in munged slurmctld slurmd sbatch scontrol; do
  PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || skip "no $tool on this machine"
done
PATH=$(dirname "$program"):$PATH:/usr/sbin
((EUID == 0)) || skip "slurmd and munged want to be root"

folder=$(mktemp -d /tmp/interlock-slurm.XXXXXX)
chmod 755 "$folder"
started=()
finish() {
  for id in "${started[@]}"; do kill "$id" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
cd "$folder"

free_port() {
  local port
  for ((port = 20000 + RANDOM % 20000; ; ++port)); do
    (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null || break
  done
  echo "$port"
}

mkdir state spool
head -c 1024 /dev/urandom >munge.key
chmod 400 munge.key
munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
  --pid-file="$folder/munge.pid" --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" \
  2>munge.err &
started+=($!)

host=$(hostname -s)
cat >slurm.conf <<END
ClusterName=interlock
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
SlurmUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$folder/slurm.conf
slurmctld -D -i -f "$SLURM_CONF" >slurmctld.log 2>&1 &
started+=($!)
slurmd -D -N "$host" -f "$SLURM_CONF" >slurmd.log 2>&1 &
started+=($!)
while [[ $(sinfo -h -o %T 2>/dev/null) != idle ]]; do
  for id in "${started[@]}"; do
    kill -0 "$id" 2>/dev/null || { tail -n 5 slurmctld.log slurmd.log munge.err; skip "Slurm does not come up here"; }
  done
  sleep 0.1
done

cat >sweep.json <<'END'
{
  "model": {"kind": "profile", "modules": [{"repeat": 4, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB", "link": {"bandwidth": "100 GB/s"}},
  "training": {"strategy": "global", "schedule": "1f1b"},
  "sweep": {"training.micro_batches": {"from": 1, "to": 40}}
}
END
jobs=$(sbatch --parsable --array=1-4 "$docs/sweep.sbatch" sweep.json)
sbatch --wait --dependency="afterany:$jobs" --job-name=merge "$docs/merge.sbatch" sweep
interlock sweep sweep.json --db whole.db --quiet
# Every column but the last, which is the time that a row took.
for file in sweep whole; do
  interlock rank "$file.db" --csv "$file.csv" --quiet
  sed 's/,[^,]*$//' "$file.csv" >"$file.rows"
done
wc -l <sweep.rows
[[ $(wc -l <sweep.rows) == 41 ]]
cmp sweep.rows whole.rows
echo "4 shards and their merge are the sweep of one run"
