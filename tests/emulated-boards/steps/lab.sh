# A lab for a board that is put to the test: a coordinator on this machine with a workspace of its own, what a user types there, and
# the comparisons that must hold. Sourced by the board-*.sh, which set $here, $cache, $work (a directory of its own), $architecture, $agent and
# $regatta, and then source what brings the board (container.sh, machine.sh): `on_board COMMAND...` runs a command there as root, $boat is its
# name, $address the address of this machine as the board reaches it, $listen where the coordinator listens. $login and $password may use sudo there.

# Holds where the board answers and the command says no: a board that cannot be reached has denied nothing.
denied_on_board() { on_board sh -c '! "$@"' sh "$@"; }
say() { printf '\n### %s\n' "$*"; }
failed() { echo "${0##*/}: DOES NOT HOLD: $*" >&2; exit 1; }
could_not() { echo "${0##*/}: $1" >&2; exit 3; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
needs() { # PACKAGES COMMAND...
    local packages=$1 tool
    shift
    [ "$(id -u)" = 0 ] || could_not "it makes a system of its own, which needs root"
    for tool in "$@"; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || could_not "$tool is missing: apt-get install $packages"
    done
}

# ---- What is put to the test.
state=/var/lib/regatta login=captain password='aye, aye'
# What every script of a container takes: sets $architecture (as it was, where nobody says), $agent and $regatta.
take_options() {
    agent='' regatta=''
    while [ $# -gt 0 ]; do
        case "$1 ${2:-}" in
            "--regatta "?*) regatta=$(realpath "$2") ;;
            "--agent "?*) agent=$(realpath "$2") ;;
            "--arch arm64" | "--arch amd64") architecture=$2 ;;
            *) echo "${0##*/}: unknown option $1; see its first lines" >&2; exit 2 ;;
        esac
        shift 2
    done
}
# The agent for the board and this machine's coordinator, where nobody named them; and programs of the board's kind run here.
ready_to_test() {
    [ -n "$agent" ] || agent=$("$here/../../cross/build.sh" "$architecture")
    if [ -z "$regatta" ]; then
        (cd "$here/../.." && cargo build --release --locked --quiet --bin regatta)
        regatta=${CARGO_TARGET_DIR:-$here/../../target}/release/regatta
    fi
    [ "$architecture" = arm64 ] || return 0
    mountpoint -q /proc/sys/fs/binfmt_misc || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
    [ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || update-binfmts --enable qemu-aarch64
}
# A Debian with systemd and more packages, unpacked once and kept: sets $bootstrapped.
bootstrap() { # SUITE NAME PACKAGE,...
    bootstrapped=$cache/$2
    [ ! -f "$bootstrapped/ready" ] || return 0
    rm -rf "$bootstrapped"
    debootstrap --arch="$architecture" --variant=minbase --include="systemd,systemd-sysv,dbus,$3" "$1" \
        "$bootstrapped" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >&2 || could_not "debootstrap could not unpack Debian $1 for $architecture"
    touch "$bootstrapped/ready"
}
# Debian 11 with sshd, whose glibc is JetPack 5's.
bootstrap_board() { bootstrap bullseye "debian11-$architecture-ssh" openssh-server,sudo,libpam-systemd; }

# Debian 12 with sshd, and what the coordinator is linked with.
bootstrap_workstation() { bootstrap bookworm "debian12-$architecture-ssh" openssh-server,libssl3,zlib1g,sqlite3; }

# ---- The coordinator.
serve=''
lab() { HOME=$work/home "$regatta" --workspace "$work/lab" "$@"; }
# What a user types on the workstation, and what he reads. The password goes in by standard input; he would be asked for it.
typed() {
    printf 'workstation$ regatta %s\n' "$*" | sed "s|$work/||g"
    lab "$@" 2>&1 | sed "s|$work/||g"
    return "${PIPESTATUS[0]}"
}
start_coordinator() {
    mkdir -p "$work/home"
    lab init --host "$address" --listen "$listen:$(free_port)" --enroll-listen "$listen:$(free_port)" \
        --assets-listen "$listen:$(free_port)" >/dev/null
    # Not by way of `lab`: the process to be ended is this one, not a shell around it.
    "$regatta" serve --workspace "$work/lab" >"$work/serve.log" 2>&1 &
    serve=$!
}
stop_coordinator() {
    if [ -n "$serve" ]; then kill "$serve" 2>/dev/null || true; fi
    serve=''
}
device_id() {
    lab device list --format json | python3 -c 'import json, sys
print(next((d["device"] for d in json.load(sys.stdin)["devices"] if d["online"] and d["name"] == sys.argv[1]), ""))' "$1"
}
wait_for_device() { # NAME [SECONDS]: sets $device
    local tries
    for tries in $(seq "${2:-90}"); do
        device=$(device_id "$1")
        [ -z "$device" ] || return 0
        sleep 1
    done
    cat "$work/serve.log" >&2
    failed "$1 did not say hello within $tries s"
}

# ---- What is deployed.
package() { # VERSION BINARY: packs it as what is to be deployed
    rm -rf "$work/dist"
    # A shim of TensorRT and a plug-in with LoadGen of the same version; nobody opens them.
    mkdir -p "$work/shims" "$work/plugins"
    echo "$1" >"$work/shims/libregatta_trt-8.5.2.so"
    echo "$1" >"$work/plugins/libregatta_loadgen-0000000000.so"
    echo '{}' >"$work/plugins/libregatta_loadgen-0000000000.json"
    "$here/../../packaging/package.sh" --binary "$2" --arch "$architecture" --version "$1" --shims "$work/shims" --plugins "$work/plugins" --level 1 --out "$work/dist" >/dev/null
}
deploy() { typed device deploy "$@" --package "$work/dist" --password-stdin <<<"$password"; }
is_active() { on_board systemctl is-active --quiet regatta-agent; }
installed() { on_board dpkg-query -W -f '${Status} ${Version}\n' regatta-agent; }
shown() {
    printf '%s# %s\n' "$boat" "$*"
    on_board "$@" 2>&1
}

# ---- Runs.
sums_here() { (cd "$work/lab/runs/$1/files" && sha256sum -- *); }
sums_there() { on_board sh -c "cd '$1/runs/$2/files' && sha256sum -- *"; } # STATE RUN
same_on_both_sides() { # STATE RUN
    sums_here "$2" >"$work/here"
    sums_there "$1" "$2" >"$work/there"
    cmp "$work/here" "$work/there" || failed "run $2 differs between board and coordinator"
}
race() { # DEVICE STATE SCENARIO ENGINE: one run, and the same bytes on both sides
    local code=0 output run
    output=$(lab run --device "$1" --benchmark digits --engine "$4" --scenario "$3" --mode PerformanceOnly --duration 2s --format json) || code=$?
    # Code 1: INVALID, which under emulation is no news.
    [ $code -le 1 ] || failed "regatta run ended with code $code"
    run=$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["runs"][0]["run"])' "$output")
    same_on_both_sides "$2" "$run"
    [ -s "$work/lab/runs/$run/files/evidence.sig" ] || failed "run $run has no signed evidence"
    printf 'run %s: %s on %s, %d files equal on both sides\n' "$run" "$3" "$4" "$(wc -l <"$work/here")"
}
