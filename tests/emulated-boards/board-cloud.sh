#!/usr/bin/env bash
# cloud-init itself takes what `regatta device image` writes: a Debian 12 with cloud-init boots as a container with a network of its own,
# finds user-data, meta-data and its network's configuration where NoCloud looks for them, installs the agent, and the board comes into the lab
# of a coordinator on this machine, which nobody logged in to. Then it boots again.
#
#   board-cloud.sh [--arch amd64|arm64] [--regatta FILE] [--agent FILE]
#
# Needs root, debootstrap, qemu-user-static, binfmt-support, systemd-container and iproute2. FILEs are this machine's coordinator and the
# agent for the architecture; without them both are built. Keeps the bootstrapped system in ${XDG_CACHE_HOME:-~/.cache}/regatta. Exit
# codes: 0 all held, 1 something did not, 2 wrong use, 3 could not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
for file in lab container first_boot; do . "$here/steps/$file.sh"; done
architecture=amd64
take_options "$@"
needs "debootstrap qemu-user-static binfmt-support systemd-container iproute2" \
    debootstrap qemu-aarch64-static update-binfmts systemd-nspawn nsenter ip
# A link between board and workstation, with addresses for documents (RFC 5737). Where somebody uses them all the same, none is taken away.
network=198.51.100 listen=0.0.0.0
address=$network.1
if ip -o address show | grep -q " $network\."; then could_not "this machine has an address in $network.0/24, which the board's link is to have"; fi

work=$(mktemp -d)
clean_up() {
    stop_coordinator
    # The link goes with the board's network.
    power_cut
    rm -rf "$work"
}
trap clean_up EXIT

boots() { # with a link of its own
    local link=ve-$boat tries
    plug_in --network-veth
    for tries in $(seq 60); do
        [ ! -e "/sys/class/net/$link" ] || break
        sleep 1
    done
    ip address add "$address/30" dev "$link"
    ip link set "$link" up
    is_up
    on_board cloud-init status --wait --long | tee "$work/status" || failed "cloud-init did not end well"
    grep -q '^status: done$' "$work/status" || failed "cloud-init did not end well"
}

ready_to_test
# debootstrap finds no virtual packages: the one that cloud-init's cryptography wants is named.
bootstrap bookworm "debian12-$architecture-cloud" cloud-init,python3-cffi-backend,openssh-server,sudo,libpam-systemd,iproute2
new_board cloud
# Its name comes from the meta-data.
echo unnamed >"$root/etc/hostname"
chroot "$root" systemctl --quiet enable systemd-networkd
# What an image's maker says of it: this one has no languages to choose from.
echo 'locale: false' >"$root/etc/cloud/cloud.cfg.d/50_board.cfg"
start_coordinator
package 0.1.0 "$agent"

say "cloud-init finds nothing wrong with the user data ($(date -u +%FT%TZ))"
typed device image "$boat" --arch "$architecture" --package "$work/dist" --coordinator "$address" --output "$work/image"
seed=$root/var/lib/cloud/seed/nocloud
install -d "$seed"
install -m 0600 "$work/image/user-data" "$work/image/meta-data" "$seed/"
printf 'version: 2\nethernets:\n  host0:\n    addresses: [%s]\n' "$network.2/30" >"$seed/network-config"
chroot "$root" cloud-init --version
chroot "$root" cloud-init schema --config-file /var/lib/cloud/seed/nocloud/user-data

say "its first boot: it comes into the lab by itself"
boots
shown hostname
shown ip -brief address show host0
came_by_itself "$boat" 0.1.0
first=$device

say "it boots again: cloud-init has nothing to do, the board is the one from before"
power_cut
boots
wait_for_device "$boat"
[ "$device" = "$first" ] || failed "the device has another identity after a reboot"
denied_on_board test -e /usr/lib/regatta-first-boot -o -e $state/enrollment-token || failed "the first boot's files are there again"
race "$boat" $state Offline null
printf '\nboard-cloud: all held (%s)\n' "$(date -u +%FT%TZ)"
