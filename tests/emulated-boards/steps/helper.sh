# The story of the helper with root: by its socket, under systemd, with its whole unit. Sourced by board-machine.sh.

# What says on the board which state it is in: cores that are on, nvpmodel's mode, the helper's journal.
read_state='echo "cores $(cat /sys/devices/system/cpu/online) mode $(cut -d" " -f1 /var/lib/nvpmodel/status) journal $(ls /var/lib/regatta-state 2>/dev/null | grep -c journal)"'
state_now() { on_board sh -c "$read_state"; }

give_modes() { # A twin of nvpmodel, since the machine has none; cores are its own.
    on_board sh -c 'cat >/etc/systemd/system/nvpmodel.service' <"$here/simulated/nvpmodel.service"
    on_board sh -c 'cat >/etc/nvpmodel.conf' <"$here/simulated/nvpmodel.conf"
    on_board sh -c 'cat >/usr/sbin/nvpmodel && chmod 755 /usr/sbin/nvpmodel && mkdir -p /var/lib/nvpmodel && echo pmode:0000 fmode:cool >/var/lib/nvpmodel/status' \
        <"$here/simulated/nvpmodel"
    on_board systemctl --quiet enable --now nvpmodel.service
    on_board sync
}

plan() { # FILE SCENARIO ENGINE DURATION STREAM [STATE]
    printf 'schema = 1\n\n[[run]]\ndevice = "%s"\nbenchmark = "digits"\nscenario = ["%s"]\nmode = ["PerformanceOnly"]\nengine = "%s"\nduration = "%s"\nstream = "%s"\n' \
        "$boat" "$2" "$3" "$4" "$5" >"$1"
    [ -z "${6:-}" ] || printf 'state = %s\n' "$6" >>"$1"
}
of_run() { # FILE EXPRESSION over `run`
    python3 -c 'import json, sys; run = json.load(open(sys.argv[1]))["runs"][0]; print(eval(sys.argv[2]))' "$1" "$2"
}
in_state() { # STATE: a run in it, its record in $work/run.json
    plan "$work/state.toml" Offline null 2s after "$1"
    lab run "$work/state.toml" --format json >"$work/run.json" || [ $? -eq 1 ] || failed "the plan was not taken"
}

helper_serves_its_agent_alone() {
    say "the helper with root, behind systemd's socket"
    # Nobody but the agent's user gets a word out of it: others not even the socket, root a refusal.
    local ask='use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => "/run/regatta-state.sock") or die "$!\n"; print $s "1 read\n"; $s->flush; while (<$s>) { print; last if /^(done|refused)/ }'
    shown systemctl is-active regatta-state.socket || failed "the helper's socket does not listen"
    on_board runuser -u regatta -- perl -e "$ask" >"$work/read" 2>&1 || true
    cat "$work/read"
    tail -n 1 "$work/read" | grep -qx done || failed "the agent's user may not read the state"
    denied_on_board runuser -u "$login" -- perl -e "$ask" 2>"$work/refused" || failed "$login spoke to the helper"
    grep -q 'Permission denied' "$work/refused" || failed "$login was kept away by: $(cat "$work/refused")"
    on_board perl -e "$ask" >"$work/refused"
    grep -qx "refused user 0 may not set this board's state" "$work/refused" || failed "root was told: $(cat "$work/refused")"
    printf 'regatta reads; %s: Permission denied; root: %s\n' "$login" "$(cat "$work/refused")"
}

runs_in_a_state() {
    local before
    say "a state that the board cannot have"
    in_state '{ gpu = "lock:max" }'
    of_run "$work/run.json" 'run["phase"] + ": " + run["reason"]' | tee "$work/refused"
    grep -q '^failed: ' "$work/refused" || failed "a state that cannot be had was taken"

    say "a state that it has: set, read back, put back, through the unit's whole hardening"
    before=$(state_now)
    echo "before: $before"
    in_state '{ power-mode = "MODE_15W", cores = "1" }'
    of_run "$work/run.json" 'run["phase"] + ": " + ", ".join("{control} {before} -> {read}".format(**k) for k in run["device_state"]["set"])' | tee "$work/set"
    grep -q '^done: ' "$work/set" || failed "the run in a state came to: $(cat "$work/run.json")"
    for knob in 'power-mode 0 -> 1' 'core-1 1 -> 0'; do
        grep -q -- "$knob" "$work/set" || failed "the state was not set: $knob"
    done
    [ "$(of_run "$work/run.json" 'run["device_state"]["before"] == run["device_state"]["after"]')" = True ] || failed "the state was not put back"
    echo "after:  $(state_now)"
    [ "$(state_now)" = "$before" ] || failed "the board is not in the state from before"

    say "the helper while it holds a state"
    plan "$work/state.toml" Offline null 8s after '{ cores = "1" }'
    lab run "$work/state.toml" --no-wait --format json >"$work/run.json"
    local tries
    for tries in $(seq 60); do
        if on_board pidof regatta-state >/dev/null; then break; fi
        sleep 0.5
    done
    sleep 2
    shown sh -c 'grep -E "^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):" /proc/$(pidof regatta-state)/status; readlink /proc/$(pidof regatta-state)/ns/net /proc/1/ns/net; nsenter -n -t $(pidof regatta-state) cat /proc/net/dev | tail -n +3 | cut -d: -f1' |
        tee "$work/status"
    echo "held:   $(state_now)"
    grep -q '^CapEff:[[:space:]]*0000000000000000$' "$work/status" && grep -q '^Seccomp:[[:space:]]*2$' "$work/status" ||
        failed "the helper has capabilities, or no filter of system calls"
    say "kill -9 of agent and helper at once"
    on_board sh -c 'kill -9 $(pidof regatta-state) $(systemctl show -p MainPID --value regatta-agent)'
    for tries in $(seq 60); do
        if [ "$(state_now)" = "$before" ]; then break; fi
        sleep 1
    done
    echo "after:  $(state_now)"
    [ "$(state_now)" = "$before" ] || failed "nobody put the state back"
    wait_for_device "$boat"
    on_board journalctl --no-pager -o cat -u 'regatta-state@*' -p warning | grep -v '^--' || true
}
