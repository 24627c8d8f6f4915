# The story of a board whose plug is pulled: in the middle of runs and of states that are set. Each moment is drawn
# from a seed. Sourced by board-machine.sh after the others.

# Every run with what the coordinator's disk has of it, to be held against later.
open_runs() { lab runs list --format json | python3 -c 'import json, sys
print(sum(run["phase"] not in ("done", "failed", "aborted") or not run["complete"] for run in json.load(sys.stdin)["runs"]))'; }
phase_of() { lab runs list --format json | python3 -c 'import json, sys
print(next(run["phase"] for run in json.load(sys.stdin)["runs"] if run["run"] == sys.argv[1]))' "$1"; }
committed() { # RUN: bytes that the coordinator has written down
    # Nothing delivered yet is no files, and no failure.
    { find "$work/lab/runs/$1/files" -type f -printf '%s\n' 2>/dev/null || true; } | awk '{ sum += $1 } END { print sum + 0 }'
}
complete_before() { # Files of runs that were delivered whole
    (cd "$work/lab/runs" && for record in */record.json; do [ -e "$record" ] && find "${record%/*}/files" -type f -exec sha256sum {} + || true; done) | sort -k 2
}

one_cut() { # NUMBER
    local run state_asked stream moment phase bytes reason engine begin tries
    # Every other run is in a state, every third delivers while it runs.
    state_asked='' stream=after engine=sim
    [ $(($1 % 2)) = 0 ] || state_asked='{ power-mode = "MODE_15W", cores = "1" }'
    [ $(($1 % 3)) != 0 ] || stream=live
    plan "$work/cut.toml" SingleStream "$engine" 8s "$stream" "$state_asked"
    complete_before >"$work/whole-before"
    lab run "$work/cut.toml" --no-wait --format json >"$work/run.json"
    run=$(of_run "$work/run.json" 'run["run"]')
    moment=$((RANDOM % 30000))
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    phase=$(phase_of "$run")
    local held
    held=$(timeout 3 ssh -q -F none -o "ControlPath=$work/master" board "$read_state" 2>/dev/null | sed -n 's/^cores \([^ ]*\) mode pmode:000\(.\) journal \(.\)$/\1, \2, \3/p' || true)
    power_cut
    bytes=$(committed "$run")
    cp -a "$work/lab/runs/$run" "$work/at-the-cut" 2>/dev/null || true

    begin=$SECONDS
    power_on
    wait_for_device "$boat" 120
    local back=$((SECONDS - begin))
    for tries in $(seq 240); do
        [ "$(open_runs)" != 0 ] || break
        sleep 1
    done
    [ "$(open_runs)" = 0 ] || failed "cut $1: run $run is $(phase_of "$run") after $tries s"
    same_on_both_sides $state "$run"
    [ -s "$work/lab/runs/$run/files/evidence.sig" ] || failed "cut $1: run $run has no signed evidence"
    typed runs verify "$run" >"$work/verified" || { cat "$work/verified"; failed "cut $1: run $run is not what the device signed"; }
    # What was delivered whole before is there, the same bytes.
    complete_before | join -v 1 -j 2 -o 1.1,1.2 "$work/whole-before" - >"$work/gone"
    [ ! -s "$work/gone" ] || failed "cut $1: the coordinator lost $(cat "$work/gone")"
    complete_before | grep -Fxvf - "$work/whole-before" >"$work/changed" || true
    [ ! -s "$work/changed" ] || failed "cut $1: changed at the coordinator: $(cat "$work/changed")"
    # The state: what outlives a reboot is put back as soon as the agent is there, which it says before its hello.
    for tries in $(seq 20); do
        if [ "$(state_now)" = "$rest" ]; then break; fi
        sleep 1
    done
    [ "$(state_now)" = "$rest" ] || failed "cut $1: the board is left in another state: $(state_now)"
    reason=$(lab runs show "$run" --format json | python3 -c 'import json, sys; run = json.load(sys.stdin); print(run["phase"], "(" + (run.get("reason") or "ended before the cut") + ")")')
    printf '| %d | %s | %s | %d.%03d s | %s | %s | %d | %s | %d s |\n' "$1" "${state_asked:+set}" "$stream" $((moment / 1000)) $((moment % 1000)) \
        "$phase" "${held:--}" "$bytes" "$reason" "$back"
    rm -rf "$work/at-the-cut"
}

power_is_cut() {
    local number
    say "the plug is pulled in the middle of runs, $cuts times, seed $seed"
    rest=$(state_now)
    RANDOM=$seed
    echo "| cut | state | delivery | after the request | the run was | cores on, mode, journal then | bytes delivered | then it is | from power to hello |"
    echo "|---:|---|---|---:|---|---|---:|---|---:|"
    for number in $(seq "$cuts"); do one_cut "$number"; done
    say "every run, on both sides"
    local run count=0
    for run in $(lab runs list --format json | python3 -c 'import json, sys; [print(run["run"]) for run in json.load(sys.stdin)["runs"]]'); do
        same_on_both_sides $state "$run"
        count=$((count + 1))
    done
    echo "$count runs, every file equal"
    if on_board sh -c "ls -a $state/runs | grep '^[.]new-'"; then failed "half-made runs are left"; fi
    # The kernel found the file system as a power cut leaves it, and no fault in it.
    grep -h 'EXT4-fs.*\(recovery complete\|error\|warning\)' "$work/$boat.console" | sed 's/^\[[ 0-9.]*\] //' | sort | uniq -c || true
}
