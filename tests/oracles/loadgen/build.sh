#!/bin/sh
# Builds the official MLCommons LoadGen with our driver, as the yardstick that our LoadGen is tested against.
#
#   REGATTA_ORACLES=DIR tests/oracles/loadgen/build.sh [VERSION ...]             default version: 6.0.17
#   REGATTA_ORACLES=DIR tests/oracles/loadgen/build.sh --debian11 [VERSION ...]  by Debian 11's g++ 10
#
# The sources come from the PyPI source package, which has no git history: good as a yardstick, not for submissions.
# Result: $REGATTA_ORACLES/loadgen-VERSION/driver, and bench beside it. Needs Python with pip, and g++ 11 or later (an older
# libstdc++ has other distributions). With --debian11: $REGATTA_ORACLES/loadgen-VERSION-libstdc++-10/driver, the yardstick for
# that rng_abi; needs root and debootstrap, and keeps a Debian 11 in $REGATTA_ORACLES/debian-11. Does nothing for a version that
# is there already with this driver.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
oracles=${REGATTA_ORACLES:?set REGATTA_ORACLES to the directory that shall hold the oracles}
cxx=${CXX:-g++}
older=''
if [ "${1:-}" = --debian11 ]; then
    older=$oracles/debian-11
    shift
fi
[ $# -gt 0 ] || set -- 6.0.17

if [ -n "$older" ]; then
    if [ ! -f "$older/ready" ]; then
        mkdir -p "$oracles"
        debootstrap --variant=minbase --include=g++ bullseye "$older" >&2 || {
            echo "build.sh: no Debian 11 could be unpacked; it needs root, debootstrap and a network" >&2
            exit 3
        }
        touch "$older/ready"
    fi
else
    major=$("$cxx" -dumpversion | cut -d. -f1)
    if [ "$major" -lt 11 ]; then
        echo "$cxx is version $major; the yardstick needs 11 or later: set CXX, or use --debian11" >&2
        exit 3
    fi
fi

# Compiles in $work, where everything lies; by Debian 11's compiler when asked to.
compile() {
    if [ -z "$older" ]; then
        (cd "$work" && "$cxx" "$@" -lpthread)
    else
        rm -rf "$older/build"
        cp -r "$work" "$older/build"
        # The distributions are templates in the driver itself; the rest of libstdc++ must not be the running system's either.
        chroot "$older" sh -c 'cd /build && exec g++ "$@" -static-libstdc++ -lpthread' sh "$@"
        cp "$older/build/$output" "$work/"
        rm -rf "$older/build"
    fi
}

for version in "$@"; do
    dir=$oracles/loadgen-$version${older:+-libstdc++-10}
    stamp=$(cat "$here/build.sh" "$here"/*.cc | sha256sum | cut -d' ' -f1)
    if [ -x "$dir/driver" ] && [ "$(cat "$dir/stamp" 2>/dev/null)" = "$stamp" ]; then
        continue
    fi
    mkdir -p "$dir"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    if [ ! -f "$dir/source.tar.gz" ]; then
        python3 -m pip download --quiet --no-deps --no-binary :all: --dest "$work" \
            "mlcommons-loadgen==$version"
        mv "$work"/*.tar.gz "$dir/source.tar.gz"
    fi
    tar -xzf "$dir/source.tar.gz" -C "$work" --strip-components=1
    cp "$here"/*.cc "$work/"
    # The package brings a generated version file, which names the machine and time of its packaging.
    lib=generated/version_generated.cc
    for name in early_stopping issue_query_controller logging test_settings_internal utils version results; do
        lib="$lib $name.cc"
    done
    output=driver
    # shellcheck disable=SC2086 # the list is meant to be split
    compile -O2 -std=c++17 -w -I . -o driver driver.cc $lib
    if [ -z "$older" ]; then
        # shellcheck disable=SC2086
        compile -O3 -std=c++17 -w -I . -o bench bench.cc loadgen.cc $lib
        mv "$work/bench" "$dir/"
    fi
    mv "$work/driver" "$dir/"
    echo "$stamp" >"$dir/stamp"
    rm -rf "$work"
    trap - EXIT
    echo "built $dir/driver"
done
