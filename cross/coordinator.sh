#!/usr/bin/env bash
# Builds the coordinator as it is released, for workstations with Debian 12, Ubuntu 22.04 or later:
#
#   coordinator.sh arm64|amd64 [PROFILE]      cargo's profile is `release` by default
#
# Needs Rust, g++ (g++-aarch64-linux-gnu for arm64), binutils, and cmake and nasm for the decoder of JPEG. Links with the C library and OpenSSL of
# Debian 12, whatever this machine has. Prints the program's path on standard output. Exit codes: 0 built, 1 it would not start on Ubuntu 22.04,
# 2 wrong usage, 3 failure.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
architecture=${1:-} profile=${2:-release}
could_not() { echo "coordinator.sh: $1" >&2; exit 3; }
program=coordinator
. "$here/environment.sh"
cd "$here/.."
. cross/remap-paths.sh
export "CARGO_TARGET_${name}_RUSTFLAGS=$flags $remap" "CXX_${target//-/_}=$triple-g++"
for variable in CFLAGS CXXFLAGS; do
    variable=${variable}_${target//-/_}
    export "$variable=${!variable} --sysroot=$sysroot"
done
# The crate's own zlib, whatever pkg-config finds on this machine.
export LIBZ_SYS_STATIC=1
export "${name}_OPENSSL_LIB_DIR=$library" "${name}_OPENSSL_INCLUDE_DIR=$sysroot/usr/include"
cargo build --profile "$profile" --locked --quiet --target "$target" --bin regatta >&2 ||
    could_not "cargo could not build the coordinator for $target; where the target is missing, run 'rustup target add $target'"
binary=$target_directory/$target/$profile/regatta

newest=$(readelf -V -W "$binary" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
if [ "$(printf '%s\n' 2.35 "$newest" | sort -V | tail -n 1)" != 2.35 ]; then
    echo "coordinator.sh: $binary needs glibc $newest; Ubuntu 22.04 has 2.35" >&2
    exit 1
fi
printf '%s\n' "$binary"
