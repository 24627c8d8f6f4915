#!/usr/bin/env bash
# The agent's package on a whole Debian 11, whose glibc is JetPack 5's: systemd boots in it (for arm64 under emulation), the
# real package is installed, upgraded, rolled back and purged, and the daemon delivers runs to a coordinator on this machine.
#
#   board-root.sh [--arch arm64|amd64] [--regatta FILE] [--agent FILE]
#
# Needs root, debootstrap, qemu-user-static, binfmt-support and systemd-container. FILEs are this machine's coordinator and the
# agent for the other architecture; without them both are built. amd64 shows what the emulator has not: seccomp. Keeps the bootstrapped system in ${XDG_CACHE_HOME:-~/.cache}/regatta. Exit
# codes: 0 all held, 1 something did not, 2 wrong use, 3 could not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
could_not() { echo "board-root.sh: $1" >&2; exit 3; }
regatta='' agent='' architecture=arm64
while [ $# -gt 0 ]; do
    case "$1 ${2:-}" in
        "--regatta "?*) regatta=$(realpath "$2") ;;
        "--agent "?*) agent=$(realpath "$2") ;;
        "--arch arm64" | "--arch amd64") architecture=$2 ;;
        *) echo "board-root.sh: unknown option $1; see its first lines" >&2; exit 2 ;;
    esac
    shift 2
done
[ "$(id -u)" = 0 ] || could_not "it boots a system of its own, which needs root"
for tool in debootstrap qemu-aarch64-static update-binfmts systemd-nspawn nsenter; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || could_not "$tool is missing: apt-get install debootstrap qemu-user-static binfmt-support systemd-container"
done
cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
base=$cache/debian11-$architecture-root
boat=boat-$architecture
targets=${CARGO_TARGET_DIR:-$here/../target}

say() { printf '\n### %s\n' "$*"; }
failed() { echo "board-root.sh: DOES NOT HOLD: $*" >&2; exit 1; }

# ---- What is put to the test.
[ -n "$agent" ] || agent=$("$here/build.sh" "$architecture")
if [ -z "$regatta" ]; then
    (cd "$here/.." && cargo build --release --locked --quiet --bin regatta)
    regatta=$targets/release/regatta
fi
mountpoint -q /proc/sys/fs/binfmt_misc || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
[ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || update-binfmts --enable qemu-aarch64
if [ ! -f "$base/ready" ]; then
    rm -rf "$base"
    debootstrap --arch="$architecture" --variant=minbase --include=systemd,systemd-sysv bullseye "$base" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >&2 ||
        could_not "debootstrap could not unpack Debian 11 for $architecture"
    touch "$base/ready"
fi

work=$(mktemp -d)
nspawn='' leader='' serve=''
clean_up() {
    if [ -n "$serve" ]; then kill "$serve" 2>/dev/null || true; fi
    # Its init takes everything in it along. An orderly shutdown does not end under emulation.
    if [ -n "$leader" ]; then kill -KILL "$leader" 2>/dev/null || true; fi
    if [ -n "$nspawn" ]; then
        sleep 1
        kill -KILL "$nspawn" 2>/dev/null || true
        wait "$nspawn" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap clean_up EXIT
root=$work/root
cp -a --reflink=auto "$base" "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
echo "$boat" >"$root/etc/hostname"

# ---- The board.
boot() {
    systemd-nspawn --quiet --register=no --keep-unit --directory="$root" --machine="$boat" --boot >"$work/console.log" 2>&1 </dev/null &
    nspawn=$!
    local pid tries
    for tries in $(seq 120); do
        for pid in $(pgrep -P "$nspawn" || true); do
            if grep -q '^NSpid:.*[[:space:]]1$' "/proc/$pid/status" 2>/dev/null; then leader=$pid; fi
        done
        if [ -n "$leader" ] && on_board systemctl is-active --quiet multi-user.target 2>/dev/null; then return 0; fi
        sleep 1
    done
    tail -n 20 "$work/console.log" >&2
    could_not "systemd did not boot in the root within $tries s"
}
on_board() {
    nsenter --target "$leader" --mount --uts --ipc --pid --root --wd -- \
        /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}
shown() {
    printf '%s# %s\n' "$boat" "$*"
    on_board "$@" 2>&1
}
package() { # VERSION BINARY: packs it and puts it onto the board
    "$here/package.sh" --binary "$2" --arch "$architecture" --version "$1" --out "$work/dist" >/dev/null
    cp "$work/dist/regatta-agent_$1_$architecture.deb" "$root/root/"
}
is_active() { on_board systemctl is-active --quiet regatta-agent; }
installed() { on_board dpkg-query -W -f '${Status} ${Version}\n' regatta-agent; }

# ---- The coordinator.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
lab() { "$regatta" "$@" --workspace "$work/lab"; }
start_coordinator() {
    lab init >/dev/null
    sed -i "s|^listen = .*|listen = \"127.0.0.1:$port\"|" "$work/lab/regatta.toml"
    # Not by way of `lab`: the process to be ended is this one, not a shell around it.
    "$regatta" serve --workspace "$work/lab" >"$work/serve.log" 2>&1 &
    serve=$!
}
device_id() {
    lab device list --format json |
        python3 -c 'import json, sys; print(next((d["device"] for d in json.load(sys.stdin)["devices"] if d["online"]), ""))'
}
wait_for_device() {
    local tries
    for tries in $(seq 90); do
        device=$(device_id)
        [ -z "$device" ] || return 0
        sleep 1
    done
    cat "$work/serve.log" >&2
    failed "the device did not say hello within $tries s"
}
race() { # SCENARIO ENGINE: one run, and the same bytes on both sides
    local code=0 output run
    output=$(lab run --device "$boat" --benchmark digits --engine "$2" --scenario "$1" --mode PerformanceOnly --duration 2s --format json) || code=$?
    # Code 1: INVALID, which under emulation is no news.
    [ $code -le 1 ] || failed "regatta run ended with code $code"
    run=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["runs"][0]["run"])' "$output")
    (cd "$work/lab/runs/$run/files" && sha256sum -- *) >"$work/here"
    (cd "$root/var/lib/regatta/runs/$run/files" && sha256sum -- *) >"$work/there"
    cmp "$work/here" "$work/there" || failed "run $run differs between board and coordinator"
    [ -s "$work/lab/runs/$run/files/evidence.sig" ] || failed "run $run has no signed evidence"
    printf 'run %s: %s on %s, %d files equal on both sides\n' "$run" "$1" "$2" "$(wc -l <"$work/here")"
}

say "a Debian 11 for $architecture boots"
boot
shown uname -m
shown sh -c 'ldd --version | head -n 1'

say "first installation"
package 0.1.0 "$agent"
shown dpkg -i /root/regatta-agent_0.1.0_$architecture.deb
is_active || failed "the daemon does not run after its installation"
shown sh -c 'grep -E "^(Uid|CapBnd|NoNewPrivs|Seccomp):" /proc/$(systemctl show -p MainPID --value regatta-agent)/status'
shown systemctl status --no-pager --lines=4 regatta-agent
start_coordinator
on_board sed -i "s|^#* *broker = .*|broker = \"mqtt://127.0.0.1:$port\"|" /etc/regatta/agent.toml
shown systemctl restart regatta-agent
wait_for_device
first=$device
shown cat /etc/regatta/agent.toml | grep -E '^(boat|name|state_dir|broker)'

say "what the board is"
shown regatta-agent doctor || true

say "runs travel to the coordinator on $(uname -m)"
race Offline null
race SingleStream sim

say "upgrade: key, configuration, runs stay"
runs=$(ls "$root/var/lib/regatta/runs" | wc -l)
package 0.1.1 "$agent"
shown dpkg -i /root/regatta-agent_0.1.1_$architecture.deb
is_active || failed "the daemon does not run after the upgrade"
[ "$(ls "$root/var/lib/regatta/runs" | wc -l)" = "$runs" ] || failed "the upgrade lost runs"
grep -q "127.0.0.1:$port" "$root/etc/regatta/agent.toml" || failed "the upgrade lost the configuration"
wait_for_device
[ "$device" = "$first" ] || failed "the device has another identity after the upgrade"
race Offline null

say "an upgrade that does not come up is rolled back"
printf '#!/bin/sh\nexit 3\n' >"$work/broken"
chmod +x "$work/broken"
package 0.1.2 "$work/broken"
if shown dpkg -i /root/regatta-agent_0.1.2_$architecture.deb; then failed "dpkg took a broken version for good"; fi
is_active || failed "nothing runs after the rollback"
cmp "$agent" "$root/usr/bin/regatta-agent" || failed "the program is not the one before"
wait_for_device
[ "$device" = "$first" ] || failed "the device has another identity after the rollback"
race Offline null
if on_board dpkg --configure regatta-agent 2>&1; then failed "dpkg --configure called the rolled back version installed"; fi

say "a version that comes up clears it"
package 0.1.3 "$agent"
shown dpkg -i /root/regatta-agent_0.1.3_$architecture.deb
[ "$(installed)" = "install ok installed 0.1.3" ] || failed "dpkg says $(installed)"
is_active || failed "the daemon does not run"

say "removal keeps what was measured, purge leaves nothing"
shown dpkg -r regatta-agent
[ -d "$root/var/lib/regatta/runs" ] && [ -f "$root/etc/regatta/agent.toml" ] || failed "removal took runs or configuration"
shown dpkg -P regatta-agent
for path in /var/lib/regatta /etc/regatta /usr/lib/regatta-agent /usr/share/regatta-agent /usr/bin/regatta-agent /lib/systemd/system/regatta-agent.service \
    /etc/systemd/system/multi-user.target.wants/regatta-agent.service; do
    [ ! -e "$root$path" ] && [ ! -L "$root$path" ] || failed "purge left $path"
done
if on_board getent passwd regatta; then failed "purge left the user"; fi

say "without root, from the archive"
on_board useradd --create-home sailor
tar -xzf "$work/dist/regatta-agent-0.1.3-$architecture.tar.gz" -C "$root/home/sailor"
shown su - sailor -c "/home/sailor/regatta-agent-0.1.3-$architecture/install.sh && .local/bin/regatta-agent --version"
printf '\nboard-root: all held\n'
