#!/usr/bin/env bash
# Builds the plug-in of a PyPI version for this machine and for aarch64, runs both (the second under qemu) and compares which
# samples they issue in which order. Debian: g++ g++-aarch64-linux-gnu qemu-user-static python3-pip.
#
#   check-aarch64.sh [VERSION]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=${1:-6.0.17}
for tool in gcc aarch64-linux-gnu-gcc qemu-aarch64-static; do
    command -v "$tool" >/dev/null || { echo "check-aarch64.sh: $tool is missing; see its first lines" >&2; exit 3; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/build.sh" --pypi "$version" --out "$work/native"
"$here/build.sh" --pypi "$version" --target aarch64 --out "$work/aarch64"
gcc -O2 -pthread -o "$work/native/driver" "$here/driver.c" -ldl
aarch64-linux-gnu-gcc -O2 -pthread -o "$work/aarch64/driver" "$here/driver.c" -ldl

issued() { # MACHINE SCENARIO [WRAPPER...]
    local machine=$1 scenario=$2
    shift 2
    mkdir -p "$work/logs/$machine/$scenario"
    "$@" "$work/$machine/driver" "$work/$machine/libregatta_loadgen-$version-NA.so" "$work/logs/$machine/$scenario" \
        "$scenario" 1000 | grep '^issued '
    grep -q '^Result is : ' "$work/logs/$machine/$scenario/mlperf_log_summary.txt"
}
for scenario in SingleStream MultiStream Server Offline; do
    native=$(issued native "$scenario")
    aarch64=$(issued aarch64 "$scenario" qemu-aarch64-static -L /usr/aarch64-linux-gnu)
    printf '%-13s here: %s   aarch64: %s\n' "$scenario" "$native" "$aarch64"
    [ "$native" = "$aarch64" ] || { echo "check-aarch64.sh: $scenario differs" >&2; exit 1; }
done
