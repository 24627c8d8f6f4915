#!/bin/sh
# Puts the official power programs, mlcommons/power-dev, beside the other oracles: tests/tests/power.rs rehearses sessions with them.
# Nothing of it is part of this repository.
#
#     REGATTA_ORACLES=DIR tests/oracles/power-dev/checkout.sh [CLONE]
#
# CLONE is a clone that is there already; otherwise it comes from GitHub. Result: $REGATTA_ORACLES/power-dev. Exit code 3 when it cannot
# be had. The tests also take a checkout that REGATTA_POWER_DEV names. They want python3.
set -eu
commit=c4b3ad8 # the release whose checksums the round files name
oracles=${REGATTA_ORACLES:?set REGATTA_ORACLES to the directory that shall hold the oracles}
[ ! -f "$oracles/power-dev/$commit" ] || exit 0
rm -rf "$oracles/power-dev" "$oracles/power-dev.new"
mkdir -p "$oracles/power-dev.new"
clone=${1:-}
if [ -z "$clone" ]; then
    clone=$(mktemp -d)
    trap 'rm -rf "$clone"' EXIT
    GIT_TERMINAL_PROMPT=0 timeout 120 git clone --quiet https://github.com/mlcommons/power-dev "$clone" >&2 || exit 3
fi
# `archive` writes line feeds as they are in the repository, whatever the user's settings are.
git -C "$clone" -c core.autocrlf=false archive "$commit" | tar -x -C "$oracles/power-dev.new" || exit 3
touch "$oracles/power-dev.new/$commit"
mv "$oracles/power-dev.new" "$oracles/power-dev"
