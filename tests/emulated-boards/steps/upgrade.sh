# The story of versions that come and go on a board that is deployed to: upgraded, rolled back, half installed, purged. Sourced by
# board-root.sh and board-machine.sh after deployment.sh.

runs_there() { on_board sh -c "ls $state/runs | wc -l"; }
sum_of() { sha256sum | cut -d' ' -f1; }
has_libraries_of() {
    local name
    for name in trt-8.5.2 loadgen-0000000000; do
        [ "$(on_board cat /usr/lib/regatta/libregatta_$name.so)" = "$1" ] || failed "libregatta_$name.so is not that of $1"
    done
}
same_device() { # after what
    wait_for_device "$boat"
    [ "$device" = "$first" ] || failed "the device has another identity after $1"
}

upgrade_keeps_everything() {
    say "upgrade: key, configuration, runs stay"
    local runs
    runs=$(runs_there)
    package 0.1.1 "$agent"
    deploy "${there[@]}"
    is_active || failed "the daemon does not run after the upgrade"
    [ "$(installed)" = "install ok installed 0.1.1" ] || failed "dpkg says $(installed)"
    [ "$(runs_there)" = "$runs" ] || failed "the upgrade lost runs"
    has_libraries_of 0.1.1
    same_device "the upgrade"
    race "$boat" $state Offline null
}

failed_upgrade_is_rolled_back() {
    say "an upgrade that does not come up is rolled back"
    printf '#!/bin/sh\nexit 3\n' >"$work/broken"
    chmod +x "$work/broken"
    package 0.1.2 "$work/broken"
    if deploy "${there[@]}"; then failed "a broken version was deployed"; fi
    is_active || failed "nothing runs after the rollback"
    [ "$(on_board cat /usr/bin/regatta-agent | sum_of)" = "$(sum_of <"$agent")" ] || failed "the program is not the one before"
    has_libraries_of 0.1.1
    same_device "the rollback"
    race "$boat" $state Offline null
    denied_on_board dpkg --configure regatta-agent 2>&1 || failed "dpkg --configure called the rolled back version installed"
}

half_a_package_is_cleared() {
    say "a version that comes up clears it, half of a package too"
    package 0.1.3 "$agent"
    on_board sh -c 'cat >/root/half.deb' <"$work/dist/regatta-agent_0.1.3_$architecture.deb"
    on_board dpkg --unpack /root/half.deb >/dev/null
    printf 'dpkg: %s\n' "$(installed)"
    deploy "${there[@]}"
    [ "$(installed)" = "install ok installed 0.1.3" ] || failed "dpkg says $(installed)"
    is_active || failed "the daemon does not run"
    wait_for_device "$boat"
}

installation_goes_on_by_itself() {
    say "the workstation is gone while dpkg is at work"
    local deploying tries found
    package 0.1.4 "$agent"
    HOME=$work/home "$regatta" --workspace "$work/lab" device deploy "${there[@]}" --package "$work/dist" --password-stdin <<<"$password" >"$work/gone" 2>&1 &
    deploying=$!
    for tries in $(seq 300); do
        found=$(installed)
        case $found in *" 0.1.4") break ;; esac
        sleep 0.1
    done
    kill -KILL "$deploying"
    wait "$deploying" 2>/dev/null || true
    printf 'dpkg then: %s\n' "$found"
    [ "$found" != "install ok installed 0.1.4" ] || failed "dpkg was at its end before"
    for tries in $(seq 120); do
        [ "$(installed)" != "install ok installed 0.1.4" ] || break
        sleep 1
    done
    printf 'dpkg: %s\n' "$(installed)"
    [ "$(installed)" = "install ok installed 0.1.4" ] || failed "the installation did not go on"
    is_active || failed "the daemon does not run"
    same_device "the installation"
    deploy "${there[@]}" | tee "$work/second"
    grep -q 'nothing to do' "$work/second" || failed "there was something left to do"
}

purge_leaves_nothing() {
    say "removal keeps what was measured, purge leaves nothing"
    local path
    shown dpkg -r regatta-agent
    on_board test -d $state/runs -a -f /etc/regatta/agent.toml || failed "removal took runs or configuration"
    shown dpkg -P regatta-agent
    for path in /var/lib/regatta /var/lib/regatta-state /etc/regatta /usr/lib/regatta-agent /usr/lib/regatta /usr/share/regatta-agent /usr/bin/regatta-agent \
        /usr/libexec/regatta-state /run/regatta-state.sock /lib/systemd/system/regatta-agent.service /lib/systemd/system/regatta-state.socket \
        /etc/systemd/system/multi-user.target.wants/regatta-agent.service; do
        denied_on_board test -e "$path" -o -L "$path" || failed "purge left $path"
    done
    denied_on_board getent passwd regatta || failed "purge left the user"
}
