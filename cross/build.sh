#!/usr/bin/env bash
# Builds the agent and its helper `regatta-state` as they are shipped, for a board or for a PC, on a Debian or Ubuntu workstation, against glibc 2.31:
#
#   build.sh [arm64|amd64] [-- MORE CARGO OPTIONS]      arm64 is the default; runs on JetPack 5 and later
#
# Needs Rust, gcc (gcc-aarch64-linux-gnu for arm64) and binutils. The CPU engine is left out (`-- --features tract` brings it).
# Prints the agent's path on standard output. Beside it are the helper, and in cli-docs man pages and completions of shells. Exit codes: 0 built, 1 it would not start on JetPack 5, 2 wrong use, 3 could not.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
architecture=arm64
if [ $# -gt 0 ] && [ "$1" != -- ]; then
    architecture=$1
    shift
fi
[ "${1:-}" != -- ] || shift
could_not() { echo "build.sh: $1" >&2; exit 3; }
. "$here/environment.sh"
cd "$here/.."
# Rust's own lld keeps functions whose machine code is the same once (docs/decisions/0064).
lld=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/gcc-ld
[ -x "$lld/ld.lld" ] || could_not "$lld/ld.lld is missing; toolchains of rustup's bring it"
. cross/remap-paths.sh
export "CARGO_TARGET_${name}_RUSTFLAGS=$flags $remap -C link-arg=-fuse-ld=lld -C link-arg=-B$lld -C link-arg=-Wl,--icf=all"
cargo build --profile board --locked --target "$target" --package regatta-agent --no-default-features --features onnxruntime "$@" >&2 ||
    could_not "cargo could not build the agent for $target; where the target is missing, 'rustup target add $target' brings it"
cargo build --profile board --locked --target "$target" --package regatta-device-state --quiet >&2 || could_not "cargo could not build the helper for $target"
agent=${CARGO_TARGET_DIR:-$PWD/target}/$target/board/regatta-agent
"$here/check-symbols.sh" "$agent" "$(dirname "$agent")/regatta-state" >&2
# A build for this machine, which may have the same architecture: with the flags of the board's, much of it would be built again.
unset "CC_${target//-/_}" "CFLAGS_${target//-/_}" "CXXFLAGS_${target//-/_}"
cargo build --workspace --locked --quiet --example command_line_documents >&2 || could_not "cargo could not build the writer of man pages"
"${CARGO_TARGET_DIR:-$PWD/target}/debug/examples/command_line_documents" "$(dirname "$agent")/cli-docs" || could_not "man pages cannot be written"
printf '%s\n' "$agent"
