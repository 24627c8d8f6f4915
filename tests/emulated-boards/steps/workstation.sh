# The story of a workstation whose plug is pulled while a device delivers to its coordinator. Each moment is drawn from a seed. Sourced by
# workstation-machine.sh after lab.sh and machine.sh: `on_board` is a command on the workstation, whose machine is called $boat there.

lab_there=/root/lab
programs_of_this_machine() {
    if [ -z "$regatta" ] || [ -z "$agent" ]; then
        (cd "$here/../.." && cargo build --release --locked --quiet --bin regatta --bin regatta-agent)
    fi
    local built=${CARGO_TARGET_DIR:-$here/../../target}/release
    [ -n "$regatta" ] || regatta=$built/regatta
    [ -n "$agent" ] || agent=$built/regatta-agent
}
there() { on_board regatta --workspace "$lab_there" "$@"; }

# The same ports here and there: the address that the device gets is forwarded.
ports=("$(free_port)" "$(free_port)" "$(free_port)")
for port in "${ports[@]}"; do forwards+=",hostfwd=tcp:127.0.0.1:$port-:$port"; done

coordinator_is_set_up() {
    strip -o "$work/regatta" "$regatta"
    on_board sh -c 'cat >/usr/local/bin/regatta && chmod +x /usr/local/bin/regatta' <"$work/regatta"
    there init --host 127.0.0.1 --listen "0.0.0.0:${ports[0]}" --enroll-listen "0.0.0.0:${ports[1]}" \
        --assets-listen "0.0.0.0:${ports[2]}" >/dev/null
    on_board sh -c 'cat >/etc/systemd/system/regatta.service' <<UNIT
[Service]
ExecStart=/usr/local/bin/regatta --workspace $lab_there serve
Restart=always
[Install]
WantedBy=multi-user.target
UNIT
    on_board systemctl --quiet enable --now regatta
    # What is set up here is not put to the test.
    on_board sync
}

# ---- The device, a process here.
agent_pid=''
start_agent() {
    local token tries
    mkdir -p "$work/device"
    printf 'name = "boat"\nstate_dir = "state"\nmin_free_mib = 16\n' >"$work/device/agent.toml"
    token=$(there device add boat --format json | python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])')
    for tries in $(seq 60); do
        ! "$agent" enroll --config "$work/device/agent.toml" "$token" >"$work/enrolled" 2>&1 || break
        sleep 1
    done
    "$agent" serve --config "$work/device/agent.toml" >"$work/agent.log" 2>&1 &
    agent_pid=$!
    for tries in $(seq 60); do
        ! grep -q 'connected to the broker' "$work/agent.log" || return 0
        sleep 1
    done
    cat "$work/enrolled" "$work/agent.log" >&2
    failed "the device did not reach its coordinator"
}
stop_agent() {
    [ -z "$agent_pid" ] || kill -KILL "$agent_pid" 2>/dev/null || true
    agent_pid=''
}
run_here() { echo "$work/device/state/runs/$1"; }
job() { # RUN EXPRESSION over `job`, what the device has written down of the run
    python3 -c 'import json, sys; job = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$(run_here "$1")/job.json" "$2"
}
# What the device was told, by its journal: `whole NAME` and `committed NAME BYTES`, of each stream the last word.
told() { # RUN
    python3 - "$(run_here "$1")/outbox.journal" <<'PYTHON'
import struct, sys
data = open(sys.argv[1], "rb").read()
assert data[:6] == b"RGTJ\x01\x00", "no journal"
at, known = 6, {}
def number(body, at):
    value = shift = 0
    while True:
        byte = body[at]; at += 1
        value |= (byte & 127) << shift; shift += 7
        if byte < 128:
            return value, at
while at + 8 <= len(data):
    length, = struct.unpack_from("<I", data, at)
    body = data[at + 8:at + 8 + length]; at += 8 + length
    if len(body) < length:
        break
    kind, size = body[0], body[1]
    name, rest = body[2:2 + size].decode(), 2 + size
    if kind == 1:
        known[name] = f"committed {name} {number(body, rest)[0]}"
    elif kind == 2:
        known[name] = f"whole {name}"
    elif kind == 3:
        known.pop(name, None)
print("\n".join(known.values()))
PYTHON
}
noise=noise.bin
committed_of_noise() { told "$1" | sed -n "s/^committed $noise \([0-9]*\)$/\1/p"; }
wait_for() { # SECONDS WHAT COMMAND...
    local seconds=$1 what=$2 begin=$SECONDS
    shift 2
    until "$@"; do
        [ $((SECONDS - begin)) -le "$seconds" ] || { tail -n 5 "$work/agent.log" >&2; failed "waited $seconds s for $what"; }
        sleep 0.02
    done
}
is_in() { [ "$(job "$1" 'job["state"]["phase"]' 2>/dev/null)" = "$2" ]; }
is_sealed() { [ "$(job "$1" 'job["sealed"]')" = True ]; }
has_committed() { [ "$(committed_of_noise "$1")" -ge "$2" ] 2>/dev/null || told "$1" | grep -qx "whole $noise"; }
is_recorded() { [ -n "$(there runs show "$1" --format json 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["recorded"] or "")' 2>/dev/null)" ]; }

# ---- What must hold: first without the device, so that nothing is sent again.
what_was_told_is_there() { # NUMBER RUN
    local kind name bytes
    while read -r kind name bytes; do
        case $kind in
            whole)
                [ "$(sha256sum <"$(run_here "$2")/files/$name")" = "$(on_board sh -c "sha256sum <$lab_there/runs/$2/files/$name")" ] ||
                    failed "cut $1: $name was called equal, and is not there"
                ;;
            committed)
                [ "$(head -c "$bytes" "$(run_here "$2")/files/$name" | sha256sum)" = "$(on_board sh -c "cat $lab_there/runs/$2/files/$name $lab_there/runs/$2/partial/$name 2>/dev/null | head -c $bytes | sha256sum")" ] ||
                    failed "cut $1: of $name $bytes bytes were acknowledged, and are not there"
                ;;
        esac
    done <"$work/told"
    if [ "$(job "$2" 'job.get("released", False)')" = True ]; then
        on_board grep -q '"complete": true' "$lab_there/runs/$2/record.json" || failed "cut $1: the run was released, and its record is not there"
    fi
    [ "$(on_board sqlite3 "$lab_there/regatta.db" 'PRAGMA integrity_check')" = ok ] || failed "cut $1: the store is damaged"
}

one_cut() { # NUMBER
    local run size point begin back released
    run=$(there run --device boat --benchmark digits --engine sim --scenario SingleStream --mode PerformanceOnly --duration 2s --no-wait --format json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')
    wait_for 60 "the run to begin" is_in "$run" running
    size=$(((16 + RANDOM % 112) << 20))
    head -c "$size" /dev/urandom >"$(run_here "$run")/files/$noise"
    # Up to its length: in the middle of the delivery; beyond: while the rest is delivered and the record is made.
    point=$((size / 100 * (RANDOM % 130)))
    wait_for 120 "the run to be sealed" is_sealed "$run"
    wait_for 120 "the delivery to come so far" has_committed "$run" $((point < size ? point : size))
    if [ $point -ge $size ]; then sleep 0.$((RANDOM % 10)); fi
    power_cut
    # What was on the line still reaches the device.
    sleep 1
    kill -STOP "$agent_pid"
    told "$run" >"$work/told"
    released=$(job "$run" 'job.get("released", False)')

    begin=$SECONDS
    power_on
    back=$((SECONDS - begin))
    what_was_told_is_there "$1" "$run"
    kill -CONT "$agent_pid"
    wait_for 300 "run $run to be recorded" is_recorded "$run"
    (cd "$(run_here "$run")/files" && sha256sum -- *) >"$work/here"
    on_board sh -c "cd $lab_there/runs/$run/files && sha256sum -- *" >"$work/there"
    cmp "$work/here" "$work/there" || failed "cut $1: run $run differs between device and workstation"
    there runs verify "$run" >"$work/verified" || { cat "$work/verified"; failed "cut $1: run $run is not what the device signed"; }
    printf '| %d | %d MiB | %s | %d | %s | %d s |\n' "$1" $((size >> 20)) \
        "$(sed -n "s/^committed $noise \([0-9]*\)$/\1/p; s/^whole $noise$/whole/p" "$work/told" | awk '{ print ($1 == "whole") ? "whole" : int($1 / 1048576) " MiB" }')" \
        "$(grep -c '^whole ' "$work/told" || true)" "$released" "$back"
}

plug_is_pulled() {
    local number
    say "the plug is pulled while a run is delivered, $cuts times, seed $seed"
    RANDOM=$seed
    echo "| cut | large file | acknowledged of it | files called equal | released | from power to its coordinator |"
    echo "|---:|---:|---:|---:|---|---:|"
    for number in $(seq "$cuts"); do one_cut "$number"; done
    grep -h 'EXT4-fs.*\(recovery complete\|error\|warning\)' "$work/$boat.console" | sed 's/^\[[ 0-9.]*\] //' | sort | uniq -c || true
    on_board journalctl --no-pager -o cat -u regatta -p warning | grep -i 'gone\|damaged' && failed "the coordinator lost what it had flushed"
    true
}
