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
cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
for file in lab container deployment upgrade first_boot; do . "$here/steps/$file.sh"; done
architecture=arm64
take_options "$@"
needs "debootstrap qemu-user-static binfmt-support systemd-container openssh-client" \
    debootstrap qemu-aarch64-static update-binfmts systemd-nspawn nsenter ssh-keygen

work=$(mktemp -d)
clean_up() {
    stop_coordinator
    power_cut
    forget_set_user_id
    rm -rf "$work"
}
trap clean_up EXIT

ready_to_test
bootstrap_board
honour_set_user_id

say "a Debian 11 for $architecture boots, with a login that may use sudo ($(date -u +%FT%TZ))"
new_board "boat-$architecture"
own_sshd
power_on
shown uname -m
shown sh -c 'ldd --version | head -n 1'
start_coordinator
make_login "$login" "$password"
sshd_answers
package 0.1.0 "$agent"
board_is_deployed

say "a wrong password, a board with the name of another"
if typed device deploy "${there[@]}" --package "$work/dist" --password-stdin <<<"no"; then failed "a wrong password was taken"; fi
if deploy raft "${there[1]}"; then failed "a board got a second name"; fi

upgrade_keeps_everything
failed_upgrade_is_rolled_back
half_a_package_is_cleared
installation_goes_on_by_itself

say "an address at which no coordinator is heard"
if deploy "${there[@]}" --coordinator 127.0.0.9 --timeout 5s; then failed "a board that is not heard was called deployed"; fi
denied_on_board grep 127.0.0.9 /etc/regatta/agent.toml || failed "the wrong address is still there"
wait_for_device "$boat"

purge_leaves_nothing

say "without root: a service of a user's own"
on_board useradd --create-home --shell /bin/bash sailor
on_board chpasswd <<<"sailor:$password"
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
package 0.1.5 "$work/broken"
if deploy "${own[@]}"; then failed "a broken version was deployed"; fi
wait_for_device "raft-$architecture"
power_cut

say "a board that was flashed with an image comes into the lab by itself"
new_board "fresh-$architecture"
own_sshd
package 0.1.3 "$agent"
typed device image "$boat" --arch "$architecture" --package "$work/dist" --coordinator "$address" --output "$work/image"
tar -xpzf "$work/image/overlay.tar.gz" -C "$root"
power_on
came_by_itself "$boat" 0.1.3
printf '\nboard-root: all held (%s)\n' "$(date -u +%FT%TZ)"
