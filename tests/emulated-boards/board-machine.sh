#!/usr/bin/env bash
# The agent on a machine of its own: Debian 11 with its own kernel, systemd, and sshd under qemu-system. What the container of
# board-root.sh cannot show is seen here: the whole hardening of both units, power cuts, first boots, wrong clocks.
#
#   board-machine.sh [--regatta FILE] [--agent FILE] [--cuts N] [--seed N] [--only PART,...]
#
# PARTs: helper, cuts, upgrade (these after a deployment), overlay; all, in this order, where none is named. FILEs are this machine's
# coordinator and the agent for arm64, `regatta-state` beside it; without them both are built. Needs root, debootstrap, qemu-system-arm,
# qemu-user-static, binfmt-support, cpio and openssh-client. What was bootstrapped is kept in
# ${XDG_CACHE_HOME:-~/.cache}/regatta. Exit codes: 0 all held, 1 something did not, 2 wrong use, 3 could not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
regatta='' agent='' architecture=arm64 cuts=6 seed=1 only=helper,cuts,upgrade,overlay
while [ $# -gt 0 ]; do
    case "$1 ${2:-}" in
        "--regatta "?*) regatta=$(realpath "$2") ;;
        "--agent "?*) agent=$(realpath "$2") ;;
        "--cuts "[0-9]*) cuts=$2 ;;
        "--seed "[0-9]*) seed=$2 ;;
        "--only "?*) only=$2 ;;
        *) echo "board-machine.sh: unknown option $1; see its first lines" >&2; exit 2 ;;
    esac
    shift 2
done
wanted() { case ",$only," in *",$1,"*) true ;; *) false ;; esac; }

cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
for file in lab machine deployment helper cuts upgrade first_boot; do . "$here/steps/$file.sh"; done
needs "debootstrap qemu-system-arm qemu-user-static binfmt-support cpio openssh-client" \
    debootstrap qemu-system-aarch64 qemu-aarch64-static update-binfmts mke2fs cpio ssh-keygen

work=$(mktemp -d)
clean_up() {
    power_cut
    stop_coordinator
    for pid in $(jobs -p); do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean_up EXIT

ready_to_test
make_base
start_coordinator

if wanted helper || wanted cuts || wanted upgrade; then
    say "a Debian 11 for $architecture boots, with a login that may use sudo ($(date -u +%FT%TZ))"
    new_board "boat-$architecture"
    power_on
    echo "from power to multi-user.target: $booted s"
    shown uname -srm
    make_login "$login" "$password"
    package 0.1.0 "$agent"
    board_is_deployed
    give_modes
    if wanted helper; then
        helper_serves_its_agent_alone
        runs_in_a_state
    fi
    if wanted cuts; then power_is_cut; fi
    if wanted upgrade; then
        upgrade_keeps_everything
        failed_upgrade_is_rolled_back
        half_a_package_is_cleared
        installation_goes_on_by_itself
        purge_leaves_nothing
    fi
    power_cut
fi
if wanted overlay; then overlay_and_a_wrong_clock; fi
printf '\nboard-machine: all held (%s)\n' "$(date -u +%FT%TZ)"
