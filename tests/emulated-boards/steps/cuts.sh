# The story of a board whose plug is pulled in the middle of runs, most of them in a state that is set. Each moment is drawn from a
# seed. Sourced by board-machine.sh after the others.

runs_are() { # EXPRESSION over `runs`
    lab runs list --format json | python3 -c 'import json, sys; runs = json.load(sys.stdin)["runs"]; print(eval(sys.argv[1]))' "$1"
}
# Runs that are not at their end, or of which something has still to come.
open_runs() { runs_are 'sum(run["phase"] not in ("done", "failed", "aborted") or not run["complete"] for run in runs)'; }
phase_of() { runs_are "next(run['phase'] for run in runs if run['run'] == '$1')"; }
wait_for_phase() { # RUN PHASE
    local tries
    for tries in $(seq 360); do
        [ "$(phase_of "$1")" != "$2" ] || return 0
        sleep 0.5
    done
    failed "run $1 is $(phase_of "$1"), not $2"
}

# What the coordinator had written down when the board went: of whole files and of those on their way.
keep_what_arrived() { # RUN
    rm -rf "$work/at-the-cut"
    mkdir -p "$work/at-the-cut"
    # What was still on the line comes to rest.
    sleep 2
    cp -a "$work/lab/runs/$1/." "$work/at-the-cut/"
}
# Not a byte of that is lost or another one: it is how each file begins.
what_arrived_is_kept() { # NUMBER RUN
    local file now
    for file in "$work"/at-the-cut/files/* "$work"/at-the-cut/partial/*; do
        [ -f "$file" ] || continue
        now=$work/lab/runs/$2/files/${file##*/}
        cmp -n "$(stat -c %s "$file")" "$file" "$now" ||
            failed "cut $1: of ${file##*/} the coordinator had $(stat -c %s "$file") bytes, and has $(stat -c %s "$now")"
    done
}
bytes_arrived() {
    # Nothing delivered yet is no files, and no failure.
    { find "$work/at-the-cut/files" "$work/at-the-cut/partial" -type f -printf '%s\n' 2>/dev/null || true; } | awk '{ sum += $1 } END { print sum + 0 }'
}
complete_before() { # Files of runs that were delivered whole
    (cd "$work/lab/runs" && for record in */record.json; do [ -e "$record" ] && find "${record%/*}/files" -type f -exec sha256sum {} + || true; done) | sort -k 2
}

one_cut() { # NUMBER
    local run state_asked stream moment held begin back tries reason
    # Every fourth run leaves the board as it is, every other delivers while it runs.
    state_asked='{ power-mode = "MODE_15W", cores = "1" }' stream=after
    [ $(($1 % 4)) != 0 ] || state_asked=''
    [ $(($1 % 2)) = 0 ] || stream=live
    plan "$work/cut.toml" SingleStream sim 60s "$stream" "$state_asked"
    complete_before >"$work/whole-before"
    lab run "$work/cut.toml" --no-wait --format json >"$work/run.json"
    run=$(of_run "$work/run.json" 'run["run"]')
    wait_for_phase "$run" running
    moment=$((RANDOM % 40000))
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    held=$(state_now | sed -n 's/^cores \([^ ]*\) mode pmode:000\(.\) journal \(.\)$/\1, \2, \3/p')
    [ "$(phase_of "$run")" = running ] || failed "cut $1: it is to fall into a run, and this one is $(phase_of "$run")"
    power_cut
    [ -z "$state_asked" ] || [ "$held" = "0, 1, 1" ] || failed "cut $1: the state was not held: $held"
    keep_what_arrived "$run"

    begin=$SECONDS
    power_on
    wait_for_device "$boat" 120
    back=$((SECONDS - begin))
    for tries in $(seq 240); do
        [ "$(open_runs)" != 0 ] || break
        sleep 1
    done
    [ "$(open_runs)" = 0 ] || failed "cut $1: run $run is $(phase_of "$run") after $tries s"
    reason=$(lab runs show "$run" --format json | python3 -c 'import json, sys; run = json.load(sys.stdin); print(run["phase"] + ": " + (run.get("reason") or ""))')
    case $reason in "failed: interrupted: "*) ;; *) failed "cut $1: run $run ended as $reason" ;; esac
    same_on_both_sides $state "$run"
    [ -s "$work/lab/runs/$run/files/evidence.sig" ] || failed "cut $1: run $run has no signed evidence"
    typed runs verify "$run" >"$work/verified" || { cat "$work/verified"; failed "cut $1: run $run is not what the device signed"; }
    what_arrived_is_kept "$1" "$run"
    # Of the runs before it every file is there, the same bytes.
    complete_before | grep -Fxvf - "$work/whole-before" >"$work/changed" || true
    [ ! -s "$work/changed" ] || failed "cut $1: lost or changed at the coordinator: $(cat "$work/changed")"
    # What outlives a reboot is put back as soon as the agent is there, which it says before its hello.
    for tries in $(seq 20); do
        if [ "$(state_now)" = "$rest" ]; then break; fi
        sleep 1
    done
    [ "$(state_now)" = "$rest" ] || failed "cut $1: the board is left in another state: $(state_now)"
    printf '| %d | %s | %s | %d.%03d s | %s | %d | %s | %d s |\n' "$1" "${state_asked:+set}" "$stream" $((moment / 1000)) $((moment % 1000)) \
        "$held" "$(bytes_arrived)" "$reason" "$back"
}

power_is_cut() {
    local number run count=0
    say "the plug is pulled in the middle of runs of 60 s, $cuts times, seed $seed"
    rest=$(state_now)
    echo "in its own state: $rest"
    RANDOM=$seed
    echo "| cut | state | delivery | after it was running | cores on, mode, journal then | bytes that had arrived | then it is | from power to hello |"
    echo "|---:|---|---|---:|---|---:|---|---:|"
    for number in $(seq "$cuts"); do one_cut "$number"; done
    say "every run, on both sides"
    for run in $(lab runs list --format json | python3 -c 'import json, sys; [print(run["run"]) for run in json.load(sys.stdin)["runs"]]'); do
        same_on_both_sides $state "$run"
        count=$((count + 1))
    done
    echo "$count runs, every file equal"
    denied_on_board sh -c "ls -a $state/runs | grep '^[.]new-'" || failed "half-made runs are left"
    # The kernel found the file system as a power cut leaves it, and no fault in it.
    grep -h 'EXT4-fs.*\(recovery complete\|error\|warning\)' "$work/$boat.console" | sed 's/^\[[ 0-9.]*\] //' | sort | uniq -c || true
}
