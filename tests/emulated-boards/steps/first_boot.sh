# The story of a board that nobody logs in to: an overlay was unpacked before it was flashed, and its clock is wrong. Sourced by
# board-machine.sh, board-root.sh and board-cloud.sh.

came_by_itself() { # NAME VERSION
    local tries
    wait_for_device "$1" 300
    for tries in $(seq 60); do
        if denied_on_board test -e /usr/lib/regatta-first-boot; then break; fi
        sleep 1
    done
    denied_on_board test -e /usr/lib/regatta-first-boot -o -e $state/enrollment-token || failed "the first boot's files are still there"
    [ "$(installed)" = "install ok installed $2" ] || failed "dpkg says $(installed)"
    shown journalctl --no-pager -o cat -u regatta-agent -u regatta-first-boot | grep -v '^$'
    race "$1" $state Offline null
}

clock_of_run() { # What the newest run's evidence says of the board's clock
    python3 - "$work/lab/runs" <<'PYTHON'
import glob, json, os, sys
newest = max(glob.glob(sys.argv[1] + "/*/files/evidence.json"), key=os.path.getmtime)
attempt = json.load(open(newest))["attempts"][0]
print("evidence:", json.dumps(attempt["started"]))
PYTHON
}

overlay_and_a_wrong_clock() {
    say "an overlay is unpacked before the first boot, and the board's clock stands in 1970"
    local root=$work/root ntp
    boat=overlay-$architecture
    package 0.1.5 "$agent"
    typed device image "$boat" --arch "$architecture" --package "$work/dist" --coordinator "$address" --output "$work/image-overlay"
    cp -a --reflink=auto "$base/root" "$root"
    tar -xpzf "$work/image-overlay/overlay.tar.gz" -C "$root"
    disk_of "$root" "$work/flashed"
    rm -rf "$root"
    new_board "$boat" "$work/flashed"
    power_on -rtc base=1970-01-01T00:00:00
    came_by_itself "$boat" 0.1.5
    shown date --iso-8601=seconds
    clock_of_run

    say "in 2001, as no systemd would leave it"
    on_board date -s 2001-01-01 >/dev/null
    on_board systemctl restart regatta-agent
    sleep 2
    wait_for_device "$boat"
    shown date --iso-8601=seconds
    race "$boat" $state Offline null
    clock_of_run

    say "the right time arrives while the daemon is connected (systemd-timesyncd, and a time server made for this)"
    python3 "$here/simulated/time-server" & ntp=$!
    on_board systemctl restart systemd-timesyncd
    for tries in $(seq 90); do
        if [ "$(on_board timedatectl show -p NTPSynchronized --value)" = yes ]; then break; fi
        sleep 1
    done
    shown timedatectl timesync-status || true
    wait_for_device "$boat"
    shown date --iso-8601=seconds
    race "$boat" $state Offline null
    clock_of_run | tee "$work/clock"
    grep -q '"synchronised": true' "$work/clock" || failed "the evidence does not tell that the clock is synchronised"
    kill "$ntp"
    power_cut
}
