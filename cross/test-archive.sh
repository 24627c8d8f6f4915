#!/usr/bin/env bash
# Builds the tests that make sense on a board into one archive that needs nothing there but tar and a shell (cargo-nextest's archive asks for
# cargo-nextest on the board, and brings no helper, fakes or LoadGen):
#
#   test-archive.sh [arm64|amd64] [--out FILE] [--package NAME]...
#
# arm64 is the default, FILE is regatta-tests-ARCH.tar.gz in the current directory, and the packages are those that run on a device.
# On the board, as an ordinary user:
#
#   tar -C /var/tmp -xzf regatta-tests-arm64.tar.gz && /var/tmp/regatta-tests/run [FILTER]
#
# The fakes of CUDA and TensorRT and the official LoadGen (from its PyPI source package) come ready-made. Test binaries hold the paths
# of their sources and of the agent that they start. So everything is built in /var/tmp/regatta-tests, and unpacked there: one user at
# a time. The CPU engine is left out, as in the agent that is shipped; linked against glibc 2.31 as build.sh does. Needs Rust, g++ (g++-aarch64-linux-gnu for arm64), python3 and pip. Exit codes: 0 built, 2 wrong use, 3 could not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
could_not() { echo "test-archive.sh: $1" >&2; exit 3; }
wrong() { echo "test-archive.sh: $1" >&2; exit 2; }
architecture=arm64 out= packages=()
while [ $# -gt 0 ]; do
    case $1 in
        arm64 | amd64) architecture=$1 ;;
        --out) out=${2:-}; [ -n "$out" ] || wrong "--out needs a file"; shift ;;
        --package) [ -n "${2:-}" ] || wrong "--package needs a name"; packages+=("$2"); shift ;;
        *) wrong "unknown word $1" ;;
    esac
    shift
done
out=$(realpath -m "${out:-regatta-tests-$architecture.tar.gz}")
[ ${#packages[@]} -gt 0 ] ||
    packages=(regatta-agent regatta-engines regatta-harness regatta-cuda regatta-loadgen regatta-mllog regatta-loadgen-conf regatta-catalogue regatta-types regatta-unit-sharing regatta-device-state regatta-tensorrt regatta-wire)
. "$here/environment.sh"
. "$here/fakes.sh"

place=/var/tmp/regatta-tests
source=$place/source
mkdir -p "$source" || could_not "$place cannot be made"
rm -rf "$source" "$place/tests"
mkdir -p "$source"
(cd "$here/.." && git ls-files --cached --others --exclude-standard -z | tar --null -T - --ignore-failed-read -cf -) | tar -C "$source" -xf -

export CARGO_TARGET_DIR=$place/target
chosen=()
for one in "${packages[@]}"; do chosen+=(--package "$one"); done
build() { (cd "$source" && cargo "$@" --locked --target "$target" --no-default-features "${chosen[@]}"); }
could_not_build() { could_not "cargo could not build $1 for $target; where the target is missing, 'rustup target add $target' brings it"; }
build test --no-run --tests --message-format=json >"$place/messages.json" || could_not_build "the tests"
# The daemon's tests start the helper as well, which is another package's program, and run the official LoadGen.
rm -rf "$place/loadgens"
mkdir -p "$place/loadgens"
if [[ " ${packages[*]} " = *" regatta-agent "* ]]; then
    (cd "$source" && cargo build --locked --target "$target" --package regatta-device-state --bins) || could_not_build "the helper"
    machine=native
    [ "$architecture" = amd64 ] || machine=aarch64
    "$here/../crates/loadgen-official/bridge/build.sh" --pypi 6.0.17 --target "$machine" --sysroot "$sysroot" --out "$place/loadgens" >&2
fi

# One line per test binary: its file below the place, and the directory that cargo would start it in.
python3 - "$place" <<'P' >"$place/list"
import json, os, sys
place = sys.argv[1]
for line in open(f"{place}/messages.json"):
    message = json.loads(line)
    if message.get("reason") == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
        package = os.path.dirname(message["manifest_path"])
        print(os.path.relpath(message["executable"], place), os.path.relpath(package, place))
P
[ -s "$place/list" ] || could_not "no test was built"
cp "$here/test-archive/run" "$place/run"
compile_fakes "$source" "$place/fakes" "$compiler" --sysroot="$sysroot" -B"$library" -L"$library"
# Beside the tests: the programs that they start, stripped, at their paths.
mapfile -t binaries < <(cut -d' ' -f1 "$place/list"; cd "$place" && find "target/$target/debug" -maxdepth 1 -type f -executable)
for binary in "${binaries[@]}"; do "$triple-strip" --strip-debug "$place/$binary"; done
tar -C /var/tmp -czf "$out" "${binaries[@]/#/regatta-tests/}" regatta-tests/list regatta-tests/run regatta-tests/fakes regatta-tests/loadgens regatta-tests/source
echo "test-archive.sh: $(wc -l <"$place/list") test binaries, $(du -h "$out" | cut -f1)" >&2
printf '%s\n' "$out"
