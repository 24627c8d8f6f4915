#!/usr/bin/env bash
# Brings what the tests of the TensorRT path need to DIR: TensorRT-RTX's libraries from their PyPI package, which build engines on
# a machine without a GPU, the lean runtime of TensorRT 11.4 from its own, and the shims for both. NVIDIA's files stay outside this
# repository.
#
#   for-tests.sh DIR      afterwards: DIR/libs and DIR/lean (REGATTA_TENSORRT), DIR/shims (REGATTA_PLUGINS)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?name a directory}

if [ "$(uname -m)" != x86_64 ]; then
    echo "for-tests.sh: these packages are for x86-64 only" >&2
    exit 3
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# bring PACKAGE VERSION FOLDER: the package's libraries, unless they lie there already.
bring() {
    local package=$1 version=$2 folder=$out/$3
    [ ! -e "$folder/.$version" ] || return 0
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$work/$3" "$package==$version" >&2
    python3 -m zipfile -e "$work/$3"/*.whl "$work/$3/unpacked"
    rm -rf "$folder"
    mkdir -p "$folder"
    mv "$work/$3"/unpacked/*_libs/*.so.* "$folder/"
    touch "$folder/.$version"
}
bring tensorrt-rtx-cu12-libs 1.7.1.116 libs
# Cheap, and so never older than their source.
"$here/all.sh" --out "$out/shims" rtx enterprise >/dev/null
bring tensorrt-lean-cu12-libs 11.4.0.106 lean
