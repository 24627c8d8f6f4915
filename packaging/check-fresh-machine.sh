#!/usr/bin/env bash
# Checks that a fresh machine with nothing but the released archive gets to a connected device in `regatta device list` in under two minutes: unpacks
# the archive, runs install.sh as an ordinary user, creates a lab, serves it, and starts the agent from the archive on the same machine.
#
#   check-fresh-machine.sh regatta-VERSION-ARCHITECTURE.tar.gz [--here]
#
# The machine is a Debian 12 from debootstrap with libssl3 and nothing else, in namespaces without a network. With --here it is this machine, with an
# empty home and the system's PATH. Needs root, and debootstrap unless --here is used. Keeps the Debian system in ${XDG_CACHE_HOME:-~/.cache}/regatta.
# Exit codes: 0 the check passes, 1 it fails, 2 wrong usage, 3 it cannot run.
set -euo pipefail
archive=$(realpath "${1:-}" 2>/dev/null) && [ -f "$archive" ] || { echo "check-fresh-machine.sh: name the archive" >&2; exit 2; }
could_not() { echo "check-fresh-machine.sh: $1" >&2; exit 3; }
longest=120
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The commands that a user types. The agent's archive is one of the installed packages.
cat >"$work/steps" <<'STEPS'
set -eu
cd
tar -xzf archive.tar.gz
sh regatta-*/install.sh
PATH=$HOME/.local/bin:$PATH
export REGATTA_WORKSPACE=$HOME/lab
regatta init --host 127.0.0.1 --listen 127.0.0.1:8883 --enroll-listen 127.0.0.1:8884 --assets-listen 127.0.0.1:8885
regatta serve >serve.log 2>&1 &
wait_for() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { echo "not within a minute: $*"; cat ./*.log; exit 1; }
        sleep 0.2
    done
}
wait_for grep -q enroll serve.log
token=$(regatta device add boat-1 --format json | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p')
mkdir agent
tar -xzf .local/share/regatta/packages/regatta-agent-*-"$(dpkg --print-architecture)".tar.gz -C agent --strip-components 1
# In a home without systemd, the script installs the agent and prints how to start the daemon.
agent/install.sh
regatta-agent enroll --config .config/regatta/agent.toml "$token"
regatta-agent serve --config .config/regatta/agent.toml >agent.log 2>&1 &
is_listed() { regatta device list | grep boat-1; }
wait_for is_listed
# The packages for boards are found without an option.
regatta device deploy boat-2 nobody@127.0.0.1:9 2>&1 | grep -q 'cannot reach' || { echo "deploy did not look for the board"; exit 1; }
STEPS

if [ "${2:-}" = --here ]; then
    mkdir "$work/home"
    cp "$archive" "$work/home/archive.tar.gz"
    chown -R nobody "$work"
    chmod 755 "$work"
    machine=(unshare --mount --pid --fork --kill-child --net --mount-proc sh -c "ip link set lo up && exec setpriv --reuid nobody --regid nogroup --clear-groups env -i HOME=$work/home USER=nobody PATH=/usr/bin:/bin sh $work/steps")
else
    command -v debootstrap >/dev/null || could_not "debootstrap is missing; on Debian or Ubuntu: apt-get install debootstrap"
    system=${XDG_CACHE_HOME:-$HOME/.cache}/regatta/fresh-debian12
    if [ ! -f "$system.ready" ]; then
        rm -rf "$system"
        debootstrap --variant=minbase --include=libssl3,zlib1g,iproute2 bookworm "$system" >"$work/log" 2>&1 || could_not "debootstrap failed: $(tail -n 1 "$work/log")"
        touch "$system.ready"
    fi
    mkdir "$work/root"
    # The user's changes stay in memory.
    machine=(unshare --mount --pid --fork --kill-child --net sh -c "mount -t tmpfs tmpfs $work/root && mkdir $work/root/upper $work/root/work $work/root/system &&
        mount -t overlay -o lowerdir=$system,upperdir=$work/root/upper,workdir=$work/root/work overlay $work/root/system &&
        mount -t proc proc $work/root/system/proc && ip link set lo up && mkdir -p $work/root/system/home/user &&
        cp $archive $work/root/system/home/user/archive.tar.gz && cp $work/steps $work/root/system/home/steps && chown -R nobody $work/root/system/home &&
        exec chroot --userspec=nobody:nogroup $work/root/system env -i HOME=/home/user USER=nobody PATH=/usr/bin:/bin sh /home/steps")
fi
begin=$SECONDS
"${machine[@]}" || { echo "check-fresh-machine.sh: a step failed" >&2; exit 1; }
took=$((SECONDS - begin))
printf 'from the archive to a device in `regatta device list`: %d s (at most %d)\n' "$took" "$longest"
[ "$took" -le "$longest" ]
