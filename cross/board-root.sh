#!/usr/bin/env bash
# The agent on a whole Debian 11, whose glibc is JetPack 5's: systemd boots in it (for arm64 under emulation), `regatta device
# deploy` brings the real package there over the board's own sshd, upgrades it and goes back, the daemon delivers runs to a
# coordinator on this machine, and the package is purged. Then for a user without root, and on a second board from an image.
#
#   board-root.sh [--arch arm64|amd64] [--regatta FILE] [--agent FILE]
#
# Needs root, debootstrap, qemu-user-static, binfmt-support, systemd-container and openssh-client. FILEs are this machine's coordinator and the
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
for tool in debootstrap qemu-aarch64-static update-binfmts systemd-nspawn nsenter ssh-keygen; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || could_not "$tool is missing: apt-get install debootstrap qemu-user-static binfmt-support systemd-container openssh-client"
done
cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
base=$cache/debian11-$architecture-ssh
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
    debootstrap --arch="$architecture" --variant=minbase --include=systemd,systemd-sysv,openssh-server,sudo,libpam-systemd,dbus bullseye "$base" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >&2 ||
        could_not "debootstrap could not unpack Debian 11 for $architecture"
    touch "$base/ready"
fi

# Debian's handler runs every program with its caller's rights: for sudo on the board, one beside it that honours set-user-ID,
# until this script ends.
handler=
if [ "$architecture" = arm64 ]; then
    handler=/proc/sys/fs/binfmt_misc/regatta-aarch64-$$
    magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    printf '%s' ":${handler##*/}:M::$magic:$mask:$(sed -n 's/^interpreter //p' /proc/sys/fs/binfmt_misc/qemu-aarch64):OCPF" >/proc/sys/fs/binfmt_misc/register
fi

work=$(mktemp -d)
nspawn='' leader='' serve=''
clean_up() {
    if [ -n "$serve" ]; then kill "$serve" 2>/dev/null || true; fi
    switch_off
    [ -z "$handler" ] || echo -1 >"$handler" || true
    rm -rf "$work"
}
trap clean_up EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
new_board() { # NAME: a system of its own, with sshd on a port of its own
    boat=$1 root=$work/$1 ssh_port=$(free_port)
    cp -a --reflink=auto "$base" "$root"
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    echo "$boat" >"$root/etc/hostname"
    printf '127.0.0.1 localhost %s\n' "$boat" >"$root/etc/hosts"
    printf 'Port %s\nListenAddress 127.0.0.1\nUseDNS no\n' "$ssh_port" >>"$root/etc/ssh/sshd_config"
}

# ---- The board.
boot() {
    systemd-nspawn --quiet --register=no --keep-unit --directory="$root" --machine="$boat" --boot >"$work/console.log" 2>&1 </dev/null &
    nspawn=$!
    leader=''
    local pid tries
    for tries in $(seq 180); do
        for pid in $(pgrep -P "$nspawn" || true); do
            if grep -q '^NSpid:.*[[:space:]]1$' "/proc/$pid/status" 2>/dev/null; then leader=$pid; fi
        done
        if [ -n "$leader" ] && on_board systemctl is-active --quiet multi-user.target 2>/dev/null; then return 0; fi
        sleep 1
    done
    tail -n 20 "$work/console.log" >&2
    could_not "systemd did not boot in the root within $tries s"
}
switch_off() { # As a board whose plug is pulled: an orderly shutdown does not end under emulation.
    [ -z "$leader" ] || kill -KILL "$leader" 2>/dev/null || true
    if [ -n "$nspawn" ]; then
        sleep 1
        kill -KILL "$nspawn" 2>/dev/null || true
        wait "$nspawn" 2>/dev/null || true
    fi
    nspawn='' leader=''
}
on_board() {
    nsenter --target "$leader" --mount --uts --ipc --pid --root --wd -- \
        /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}
shown() {
    printf '%s# %s\n' "$boat" "$*"
    on_board "$@" 2>&1
}
package() { # VERSION BINARY: packs it as what is to be deployed
    rm -rf "$work/dist"
    "$here/package.sh" --binary "$2" --arch "$architecture" --version "$1" --out "$work/dist" >/dev/null
}
is_active() { on_board systemctl is-active --quiet regatta-agent; }
installed() { on_board dpkg-query -W -f '${Status} ${Version}\n' regatta-agent; }

# ---- The coordinator.
lab() { HOME=$work/home "$regatta" --workspace "$work/lab" "$@"; }
# What a user types on the workstation, and what he reads. The password goes in by standard input; he would be asked for it.
typed() {
    printf 'workstation$ regatta %s\n' "$*" | sed "s|$work/||g"
    lab "$@" 2>&1 | sed "s|$work/||g"
    return "${PIPESTATUS[0]}"
}
start_coordinator() {
    mkdir -p "$work/home"
    lab init --host 127.0.0.1 --listen "127.0.0.1:$(free_port)" --enrol-listen "127.0.0.1:$(free_port)" \
        --assets-listen "127.0.0.1:$(free_port)" >/dev/null
    # Not by way of `lab`: the process to be ended is this one, not a shell around it.
    "$regatta" serve --workspace "$work/lab" >"$work/serve.log" 2>&1 &
    serve=$!
}
device_id() {
    lab device list --format json | python3 -c 'import json, sys
print(next((d["device"] for d in json.load(sys.stdin)["devices"] if d["online"] and d["name"] == sys.argv[1]), ""))' "$1"
}
wait_for_device() {
    local tries
    for tries in $(seq 90); do
        device=$(device_id "$1")
        [ -z "$device" ] || return 0
        sleep 1
    done
    cat "$work/serve.log" >&2
    failed "$1 did not say hello within $tries s"
}
race() { # DEVICE STATE SCENARIO ENGINE: one run, and the same bytes on both sides
    local code=0 output run state=$root$2
    output=$(lab run --device "$1" --benchmark digits --engine "$4" --scenario "$3" --mode PerformanceOnly --duration 2s --format json) || code=$?
    # Code 1: INVALID, which under emulation is no news.
    [ $code -le 1 ] || failed "regatta run ended with code $code"
    run=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["runs"][0]["run"])' "$output")
    (cd "$work/lab/runs/$run/files" && sha256sum -- *) >"$work/here"
    (cd "$state/runs/$run/files" && sha256sum -- *) >"$work/there"
    cmp "$work/here" "$work/there" || failed "run $run differs between board and coordinator"
    [ -s "$work/lab/runs/$run/files/evidence.sig" ] || failed "run $run has no signed evidence"
    printf 'run %s: %s on %s, %d files equal on both sides\n' "$run" "$3" "$4" "$(wc -l <"$work/here")"
}

state=/var/lib/regatta
login=captain
password='aye, aye'

say "a Debian 11 for $architecture boots, with a login that may use sudo"
new_board "boat-$architecture"
boot
shown uname -m
shown sh -c 'ldd --version | head -n 1'
on_board useradd --create-home --shell /bin/bash --groups sudo "$login"
echo "$login:$password" | on_board chpasswd
start_coordinator
package 0.1.0 "$agent"
fingerprint=$(ssh-keygen -lf "$root/etc/ssh/ssh_host_ed25519_key.pub" | cut -d' ' -f2)
deploy() { typed device deploy "$@" --package "$work/dist" --password-stdin <<<"$password"; }
there=("$boat" "$login@127.0.0.1:$ssh_port")

say "who it is, nobody has said yet"
for tries in $(seq 60); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$ssh_port") 2>/dev/null; then break; fi
    sleep 1
done
if deploy "${there[@]}"; then failed "an unknown host was trusted"; fi
say "what would be done"
deploy "${there[@]}" --dry-run --accept-host-key "$fingerprint"
[ ! -e "$root/usr/bin/regatta-agent" ] || failed "a dry run installed something"

say "deployed: copied, installed by sudo, enrolled, started, heard"
deploy "${there[@]}"
is_active || failed "the daemon does not run after its deployment"
wait_for_device "$boat"
first=$device
shown systemctl status --no-pager --lines=4 regatta-agent
shown sh -c 'grep -E "^(Uid|CapBnd|NoNewPrivs|Seccomp):" /proc/$(systemctl show -p MainPID --value regatta-agent)/status'

say "the second time"
deploy "${there[@]}" | tee "$work/second"
grep -q 'nothing to do' "$work/second" || failed "the second time there was something to do"

say "what the board is"
shown regatta-agent doctor || true

say "runs travel to the coordinator on $(uname -m)"
race "$boat" $state Offline null
race "$boat" $state SingleStream sim

say "a wrong password, a board with the name of another"
if typed device deploy "${there[@]}" --package "$work/dist" --password-stdin <<<"no"; then failed "a wrong password was taken"; fi
if deploy raft "$login@127.0.0.1:$ssh_port"; then failed "a board got a second name"; fi

say "upgrade: key, configuration, runs stay"
runs=$(ls "$root$state/runs" | wc -l)
package 0.1.1 "$agent"
deploy "${there[@]}"
is_active || failed "the daemon does not run after the upgrade"
[ "$(installed)" = "install ok installed 0.1.1" ] || failed "dpkg says $(installed)"
[ "$(ls "$root$state/runs" | wc -l)" = "$runs" ] || failed "the upgrade lost runs"
wait_for_device "$boat"
[ "$device" = "$first" ] || failed "the device has another identity after the upgrade"
race "$boat" $state Offline null

say "an upgrade that does not come up is rolled back"
printf '#!/bin/sh\nexit 3\n' >"$work/broken"
chmod +x "$work/broken"
package 0.1.2 "$work/broken"
if deploy "${there[@]}"; then failed "a broken version was deployed"; fi
is_active || failed "nothing runs after the rollback"
cmp "$agent" "$root/usr/bin/regatta-agent" || failed "the program is not the one before"
wait_for_device "$boat"
[ "$device" = "$first" ] || failed "the device has another identity after the rollback"
race "$boat" $state Offline null
if on_board dpkg --configure regatta-agent 2>&1; then failed "dpkg --configure called the rolled back version installed"; fi

say "a version that comes up clears it, half of a package too"
package 0.1.3 "$agent"
cp "$work/dist/regatta-agent_0.1.3_$architecture.deb" "$root/root/half.deb"
on_board dpkg --unpack /root/half.deb >/dev/null
printf 'dpkg: %s\n' "$(installed)"
deploy "${there[@]}"
[ "$(installed)" = "install ok installed 0.1.3" ] || failed "dpkg says $(installed)"
is_active || failed "the daemon does not run"
wait_for_device "$boat"

say "an address at which no coordinator is heard"
if deploy "${there[@]}" --coordinator 127.0.0.9 --wait 5s; then failed "a board that is not heard was called deployed"; fi
if grep -q 127.0.0.9 "$root/etc/regatta/agent.toml"; then failed "the wrong address is still there"; fi
wait_for_device "$boat"

say "removal keeps what was measured, purge leaves nothing"
shown dpkg -r regatta-agent
[ -d "$root$state/runs" ] && [ -f "$root/etc/regatta/agent.toml" ] || failed "removal took runs or configuration"
shown dpkg -P regatta-agent
for path in /var/lib/regatta /etc/regatta /usr/lib/regatta-agent /usr/share/regatta-agent /usr/bin/regatta-agent /lib/systemd/system/regatta-agent.service \
    /etc/systemd/system/multi-user.target.wants/regatta-agent.service; do
    [ ! -e "$root$path" ] && [ ! -L "$root$path" ] || failed "purge left $path"
done
if on_board getent passwd regatta; then failed "purge left the user"; fi

say "without root: a service of a user's own"
on_board useradd --create-home --shell /bin/bash sailor
echo "sailor:$password" | on_board chpasswd
own=("raft-$architecture" "sailor@127.0.0.1:$ssh_port")
deploy "${own[@]}"
wait_for_device "raft-$architecture"
# As the deployment says: without it the service ends with his last login.
shown loginctl enable-linger sailor
# Asked over a login of his own, as he would.
shown su - sailor -c 'XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user status --no-pager --lines=2 regatta-agent' || failed "the user's service does not run"
race "raft-$architecture" /home/sailor/.local/state/regatta Offline null
deploy "${own[@]}" | tee "$work/second"
grep -q 'nothing to do' "$work/second" || failed "the second time there was something to do"
package 0.1.4 "$work/broken"
if deploy "${own[@]}"; then failed "a broken version was deployed"; fi
wait_for_device "raft-$architecture"
switch_off

say "a board that was flashed with an image comes into the lab by itself"
new_board "fresh-$architecture"
package 0.1.3 "$agent"
typed device image "$boat" --arch "$architecture" --package "$work/dist" --coordinator 127.0.0.1 --out "$work/image"
tar -xpzf "$work/image/overlay.tar.gz" -C "$root"
boot
wait_for_device "$boat"
for tries in $(seq 30); do [ -e "$root/usr/lib/regatta-first-boot" ] || break; sleep 1; done
[ ! -e "$root/usr/lib/regatta-first-boot" ] || failed "the first boot's files are still there"
[ ! -e "$root$state/enrolment-token" ] || failed "the token is still there"
[ "$(installed)" = "install ok installed 0.1.3" ] || failed "dpkg says $(installed)"
shown journalctl --no-pager -o cat -u regatta-agent -u regatta-first-boot | grep -v '^$'
race "$boat" $state Offline null
printf '\nboard-root: all held\n'
