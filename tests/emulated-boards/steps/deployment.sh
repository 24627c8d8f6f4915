# The story of a board that is deployed to, by its own sshd and sudo. Sourced by board-machine.sh and board-root.sh after lab.sh.

make_login() { # LOGIN PASSWORD
    on_board useradd --create-home --shell /bin/bash --groups sudo "$1"
    on_board chpasswd <<<"$1:$2"
    fingerprint=$(on_board ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub | cut -d' ' -f2)
    there=("$boat" "$1@127.0.0.1:$ssh_port")
}

board_is_deployed() {
    say "who it is, nobody has said yet; what would be done"
    if deploy "${there[@]}"; then failed "an unknown host was trusted"; fi
    deploy "${there[@]}" --dry-run --accept-host-key "$fingerprint"
    denied_on_board test -e /usr/bin/regatta-agent || failed "a dry run installed something"

    say "deployed: copied, installed by sudo, enrolled, started, heard"
    deploy "${there[@]}"
    is_active || failed "the daemon does not run after its deployment"
    wait_for_device "$boat"
    first=$device
    shown systemctl status --no-pager --lines=4 regatta-agent
    shown sh -c 'grep -E "^(Uid|CapBnd|NoNewPrivs|Seccomp):" /proc/$(systemctl show -p MainPID --value regatta-agent)/status' | tee "$work/status"
    grep -q '^CapBnd:[[:space:]]*0000000000000000$' "$work/status" && grep -q '^Seccomp:[[:space:]]*2$' "$work/status" ||
        failed "the daemon runs with capabilities or without a filter of system calls"

    say "the second time"
    deploy "${there[@]}" | tee "$work/second"
    grep -q 'nothing to do' "$work/second" || failed "the second time there was something to do"

    say "what the board is, asked there and from the workstation"
    shown regatta-agent doctor || true
    typed device doctor "$boat" >"$work/asked" || true
    head -n 6 "$work/asked"
    grep -q '^kernel ' "$work/asked" || failed "device doctor did not say what the board is"

    say "runs travel to the coordinator"
    race "$boat" $state Offline null
    race "$boat" $state SingleStream sim
}
