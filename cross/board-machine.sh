#!/usr/bin/env bash
# The agent on a machine of its own: Debian 11 with its own kernel, systemd, and sshd under qemu-system. What the container of
# board-root.sh cannot show is seen here: the whole hardening of both units, power cuts, first boots, wrong clocks.
#
#   board-machine.sh [--regatta FILE] [--agent FILE] [--cuts N] [--seed N] [--only PART,...]
#
# PARTs: helper, cuts (both after a deployment), overlay; all, in this order, where none is named. FILEs are this machine's
# coordinator and the agent for arm64, `regatta-state` beside it; without them both are built. Needs root, debootstrap, qemu-system-arm,
# qemu-user-static, binfmt-support, cpio and openssh-client. What was bootstrapped is kept in
# ${XDG_CACHE_HOME:-~/.cache}/regatta. Exit codes: 0 all held, 1 something did not, 2 wrong use, 3 could not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
could_not() { echo "board-machine.sh: $1" >&2; exit 3; }
regatta='' agent='' architecture=arm64 cuts=10 seed=1 only=helper,cuts,overlay
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

[ "$(id -u)" = 0 ] || could_not "it makes a root file system, which needs root"
for tool in debootstrap qemu-system-aarch64 qemu-aarch64-static update-binfmts mke2fs cpio ssh-keygen; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
        could_not "$tool is missing: apt-get install debootstrap qemu-system-arm qemu-user-static binfmt-support cpio openssh-client"
done
cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
targets=${CARGO_TARGET_DIR:-$here/../target}
state=/var/lib/regatta login=captain password='aye, aye'
for file in lab machine deployment helper cuts first_boot; do . "$here/board/$file.sh"; done

work=$(mktemp -d)
clean_up() {
    power_cut
    stop_coordinator
    for pid in $(jobs -p); do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean_up EXIT

# ---- What is put to the test.
[ -n "$agent" ] || agent=$("$here/build.sh" "$architecture")
if [ -z "$regatta" ]; then
    (cd "$here/.." && cargo build --release --locked --quiet --bin regatta)
    regatta=$targets/release/regatta
fi
mountpoint -q /proc/sys/fs/binfmt_misc || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
[ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || update-binfmts --enable qemu-aarch64
make_base
start_coordinator

if wanted helper || wanted cuts; then
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
    power_cut
fi
if wanted overlay; then overlay_and_a_wrong_clock; fi
printf '\nboard-machine: all held (%s)\n' "$(date -u +%FT%TZ)"
