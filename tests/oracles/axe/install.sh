#!/bin/sh
# Fetches axe-core from npm, the checker of accessibility for the live page, and prints the path of its script.
#
#     REGATTA_ORACLES=DIR tests/oracles/axe/install.sh
set -eu
version=4.10.3
dir=${REGATTA_ORACLES:?set REGATTA_ORACLES to the directory that shall hold the oracles}/axe-core-$version
if [ ! -f "$dir/ready" ]; then
    rm -rf "$dir"
    mkdir -p "$dir"
    cd "$dir"
    npm pack --silent "axe-core@$version" >&2
    tar -xzf "axe-core-$version.tgz"
    touch ready
fi
echo "$dir/package/axe.min.js"
