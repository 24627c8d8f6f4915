#!/usr/bin/env bash
# The coordinator through power cuts: `regatta serve` on a machine of its own, Debian 12 with its own kernel under qemu-system, whose plug
# is pulled while a device delivers to it. The device is an agent on this machine, so that what it was told is known exactly: every byte
# that was acknowledged must be on the workstation's disk afterwards, and nothing was released before its record was there.
#
#   workstation-machine.sh [--regatta FILE] [--agent FILE] [--cuts N] [--seed N]
#
# FILEs are programs of this machine's kind; without them both are built. Needs an x86-64 machine, root, debootstrap, qemu-system-x86,
# cpio and openssh-client. What was bootstrapped is kept in ${XDG_CACHE_HOME:-~/.cache}/regatta.
# Exit codes: 0 all held, 1 something did not, 2 wrong use, 3 could not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
regatta='' agent='' architecture=amd64 cuts=8 seed=1
while [ $# -gt 0 ]; do
    case "$1 ${2:-}" in
        "--regatta "?*) regatta=$(realpath "$2") ;;
        "--agent "?*) agent=$(realpath "$2") ;;
        "--cuts "[0-9]*) cuts=$2 ;;
        "--seed "[0-9]*) seed=$2 ;;
        *) echo "workstation-machine.sh: unknown option $1; see its first lines" >&2; exit 2 ;;
    esac
    shift 2
done

cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
for file in lab machine workstation; do . "$here/steps/$file.sh"; done
needs "debootstrap qemu-system-x86 cpio openssh-client" debootstrap qemu-system-x86_64 mke2fs cpio ssh-keygen

work=$(mktemp -d)
clean_up() {
    power_cut
    stop_agent
    rm -rf "$work"
}
trap clean_up EXIT

programs_of_this_machine
make_base
say "a Debian 12 boots, with a coordinator that starts by itself ($(date -u +%FT%TZ))"
new_board workstation
power_on
echo "from power to multi-user.target: $booted s"
coordinator_is_set_up
start_agent
plug_is_pulled
printf '\nworkstation-machine: all held (%s)\n' "$(date -u +%FT%TZ)"
