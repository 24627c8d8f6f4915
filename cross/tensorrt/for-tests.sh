#!/usr/bin/env bash
# Brings what the tests of the TensorRT path need to DIR: TensorRT-RTX's libraries from their PyPI package, which build engines on
# a machine without a GPU, and the shims whose headers can be had here. NVIDIA's files stay outside this repository.
#
#   for-tests.sh DIR      afterwards: DIR/libs (REGATTA_TENSORRT) and DIR/shims (REGATTA_PLUGINS)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?name a directory}
package=tensorrt-rtx-cu12-libs version=1.7.1.116

if [ "$(uname -m)" != x86_64 ]; then
    echo "for-tests.sh: $package is for x86-64 only" >&2
    exit 3
fi
if [ ! -e "$out/libs/.$version" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$work" "$package==$version" >&2
    rm -rf "$out/libs"
    mkdir -p "$out/libs"
    python3 -m zipfile -e "$work"/*.whl "$work/unpacked"
    mv "$work"/unpacked/tensorrt_rtx_libs/*.so.* "$out/libs/"
    touch "$out/libs/.$version"
fi
# Cheap, and so never older than their source.
"$here/all.sh" --out "$out/shims" rtx enterprise >/dev/null
