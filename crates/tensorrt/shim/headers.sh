#!/usr/bin/env bash
# Prints the directory of the TensorRT headers that the source package of the crate `trtx-sys` carries, and has cargo fetch it:
#
#   headers.sh rtx|enterprise      TensorRT-RTX 1.7, TensorRT 11.4
#
# They are for tests: NVIDIA's, under the Apache licence, and no part of this repository. Exit codes: 0 there, 2 wrong use, 3 could not.
set -euo pipefail
case ${1:-} in
    rtx) folder=TRT-RTX-1.7 ;;
    enterprise) folder=TRT-Enterprise-11.4 ;;
    *) echo "headers.sh: say rtx or enterprise" >&2; exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '[package]\nname = "headers"\nversion = "0.0.0"\n[lib]\npath = "lib.rs"\n[dependencies]\ntrtx-sys = "=0.9.1"\n' >"$work/Cargo.toml"
: >"$work/lib.rs"
(cd "$work" && cargo metadata --quiet --format-version 1 >metadata.json) ||
    { echo "headers.sh: cargo could not fetch trtx-sys 0.9.1, which it tells of above" >&2; exit 3; }
manifest=$(grep -o '"manifest_path":"[^"]*trtx-sys-[^"]*"' "$work/metadata.json" | head -n 1 | cut -d'"' -f4)
printf '%s\n' "$(dirname "$manifest")/TensorRT-Headers/$folder"
