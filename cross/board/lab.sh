# A lab for a board that is put to the test: a coordinator on this machine with a workspace of its own, what a user types there, and
# the comparisons that must hold. Sourced by board-machine.sh, which brings the board: `on_board COMMAND...` runs a
# command there as root, $work is a directory of its own, $regatta the coordinator's program, $architecture the board's, $address the
# address of this machine as the board reaches it, $listen where the coordinator listens, $boat the board's name, $login and $password who may use sudo there.

say() { printf '\n### %s\n' "$*"; }
failed() { echo "${0##*/}: DOES NOT HOLD: $*" >&2; exit 1; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Debian 11 with systemd and sshd, unpacked once and kept: sets $bootstrapped.
bootstrap_root() {
    bootstrapped=$cache/debian11-$architecture-ssh
    [ ! -f "$bootstrapped/ready" ] || return 0
    rm -rf "$bootstrapped"
    debootstrap --arch="$architecture" --variant=minbase --include=systemd,systemd-sysv,openssh-server,sudo,libpam-systemd,dbus bullseye \
        "$bootstrapped" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >&2 || could_not "debootstrap could not unpack Debian 11 for $architecture"
    touch "$bootstrapped/ready"
}

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
    lab init --host "$address" --listen "$listen:$(free_port)" --enrol-listen "$listen:$(free_port)" \
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
    "$here/package.sh" --binary "$2" --arch "$architecture" --version "$1" --level 1 --out "$work/dist" >/dev/null
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
