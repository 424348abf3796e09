#!/bin/sh
# A SLURM cluster of one node on this machine, to try sweeps on: scripts/local_slurm.sh start|stop|status
#
# Debian's slurm-wlm and munge, installed if need be; no accounting. Needs root. Everything of ours is in $STATE: stop
# ends what start began and nothing else. SLURM reads the configuration from /etc/slurm/slurm.conf, which start writes
# and stop removes; one that somebody else wrote is left alone and refused.
set -eu

STATE=${LOCAL_SLURM_STATE:-/var/lib/bci-local-slurm}
CONF=/etc/slurm/slurm.conf
MARK='# written by bci scripts/local_slurm.sh'

fail() {
    echo "local_slurm: $1" >&2
    exit 1
}

# alive NAME: whether the daemon of that name that start began still runs
alive() {
    pid=$(cat "$STATE/$1.pid" 2>/dev/null) || return 1
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ]
}

ours() {
    [ "$(head -n 1 "$CONF" 2>/dev/null)" = "$MARK" ]
}

answers() {
    timeout 5 sinfo --noheader --format=%T 2>/dev/null | grep -qE '^(idle|mixed|allocated)'
}

wait_for() { # wait_for SECONDS WHAT COMMAND...
    tries=$(($1 * 5)) what=$2
    shift 2
    while ! "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "$what; see $STATE/*.log"
        sleep 0.2
    done
}

configure() {
    memory=$(($(awk '/^MemTotal/ {print $2}' /proc/meminfo) / 1024 * 9 / 10))
    mkdir -p "$(dirname "$CONF")"
    cat > "$CONF" <<EOF
$MARK
ClusterName=local
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$STATE/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=5
StateSaveLocation=$STATE/ctld
SlurmdSpoolDir=$STATE/d
SlurmctldPidFile=$STATE/slurmctld.pid
SlurmdPidFile=$STATE/slurmd.pid
SlurmctldLogFile=$STATE/slurmctld.log
SlurmdLogFile=$STATE/slurmd.log
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(getconf _NPROCESSORS_ONLN) RealMemory=$memory State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
}

start() {
    [ "$(id -u)" = 0 ] || fail "expected to run as root, got user $(id -un); use sudo"
    if ours && alive munged && alive slurmctld && alive slurmd && answers; then
        echo "local_slurm: runs already"
        return
    fi
    [ ! -e "$CONF" ] || ours || fail "$CONF was written by somebody else; this machine has a SLURM configuration already"
    if ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null || ! command -v munged >/dev/null; then
        command -v apt-get >/dev/null || fail "expected Debian's packages slurm-wlm and munge, got no apt-get; install SLURM and munge by hand"
        echo "local_slurm: installing slurm-wlm and munge"
        mkdir -p "$STATE"
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge; } \
            > "$STATE/apt.log" 2>&1 || fail "could not install slurm-wlm and munge; see $STATE/apt.log"
    fi
    stop_daemons
    mkdir -p "$STATE/ctld" "$STATE/d"
    chmod 755 "$STATE"
    configure
    if [ ! -e "$STATE/munge.key" ]; then
        (umask 077 && dd if=/dev/urandom of="$STATE/munge.key" bs=1024 count=1 2>/dev/null)
    fi
    # --force: our folder instead of munge's own, and root instead of its user
    munged --force --key-file="$STATE/munge.key" --socket="$STATE/munge.socket" --pid-file="$STATE/munged.pid" \
        --log-file="$STATE/munged.log" --seed-file="$STATE/munge.seed" >/dev/null 2>&1 || fail "munged did not start; see $STATE/munged.log"
    wait_for 10 "munged does not answer" test -S "$STATE/munge.socket"
    slurmctld >/dev/null 2>&1 || fail "slurmctld did not start; see $STATE/slurmctld.log"
    slurmd >/dev/null 2>&1 || fail "slurmd did not start; see $STATE/slurmd.log"
    wait_for 60 "the node did not come up" answers
    echo "local_slurm: one node with $(getconf _NPROCESSORS_ONLN) cores is up; stop it with scripts/local_slurm.sh stop"
}

stop_daemons() {
    for name in slurmd slurmctld munged; do
        if alive "$name"; then
            kill "$pid"
            tries=100
            while alive "$name" && [ "$tries" -gt 0 ]; do
                sleep 0.1
                tries=$((tries - 1))
            done
            if alive "$name"; then kill -9 "$pid"; fi
        fi
        rm -f "$STATE/$name.pid"
    done
}

stop() {
    if ! ours && [ ! -d "$STATE" ]; then
        echo "local_slurm: nothing to stop"
        return
    fi
    [ "$(id -u)" = 0 ] || fail "expected to run as root, got user $(id -un); use sudo"
    if ours && answers; then
        scancel --state=PENDING --partition=main 2>/dev/null || true
        scancel --state=RUNNING --partition=main 2>/dev/null || true
        sleep 1
    fi
    stop_daemons
    if ours; then rm -f "$CONF"; fi
    rm -rf "$STATE"
    echo "local_slurm: stopped"
}

status() {
    if ours && answers; then
        echo "local_slurm: up"
        sinfo
    else
        echo "local_slurm: down"
        return 1
    fi
}

case "${1:-}" in
    start | stop | status) "$1" ;;
    *)
        echo "usage: scripts/local_slurm.sh start|stop|status" >&2
        exit 2
        ;;
esac
