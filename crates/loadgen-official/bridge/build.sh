#!/usr/bin/env bash
# Builds a LoadGen plug-in from LoadGen's own sources, which stay as they are and are not part of this repository:
#
#   build.sh --source DIR --out DIR      a checkout of mlcommons/inference (or its loadgen folder)
#   build.sh --pypi VERSION --out DIR    the source package `mlcommons-loadgen`; has no git history, for tests only
#
# Options: --target aarch64 (Debian's cross compiler), --sysroot DIR (link against an older system's libc),
# --cxx COMPILER. SOURCE_DATE_EPOCH is the build date that LoadGen logs, by default the present. Writes
# libregatta_loadgen-<revision>.so and, beside it, the same name with .json: how it was built.
# Exit codes: 0 built, 2 wrong use, 3 could not.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd)

wrong_use() { echo "build.sh: $1; see --help" >&2; exit 2; }
could_not() { echo "build.sh: $1" >&2; exit 3; }

source='' pypi='' out='' target=native sysroot='' cxx=${CXX:-}
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || wrong_use "$1 needs a value"
    case $1 in
        --source) source=$2 ;;
        --pypi) pypi=$2 ;;
        --out) out=$2 ;;
        --target) target=$2 ;;
        --sysroot) sysroot=$2 ;;
        --cxx) cxx=$2 ;;
        *) wrong_use "unknown option $1" ;;
    esac
    shift 2
done
[ -n "$out" ] || wrong_use "--out is missing"
[ -n "$source$pypi" ] || wrong_use "give --source or --pypi"
[ -z "$source" ] || [ -z "$pypi" ] || wrong_use "give one of --source and --pypi"
case $target in
    native) cxx=${cxx:-g++} ;;
    aarch64) cxx=${cxx:-aarch64-linux-gnu-g++} ;;
    *) wrong_use "unknown target $target; known is aarch64" ;;
esac
command -v "$cxx" >/dev/null || could_not "$cxx is missing; on Debian or Ubuntu: apt-get install g++ (g++-aarch64-linux-gnu for --target aarch64)"
command -v python3 >/dev/null || could_not "python3 is missing; LoadGen's own version_generator.py needs it"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- The sources: where they are, and whether they have a history.
if [ -n "$pypi" ]; then
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
        --dest "$work/sdist" "mlcommons-loadgen==$pypi" >&2 || could_not "pip could not fetch mlcommons-loadgen $pypi; it needs a network and python3-pip"
    mkdir "$work/unpacked"
    tar -xzf "$work"/sdist/*.tar.gz -C "$work/unpacked" --strip-components=1
    loadgen=$work/unpacked origin=pypi
else
    loadgen=$source
    [ -f "$source/loadgen/loadgen.cc" ] && loadgen=$source/loadgen
    [ -f "$loadgen/loadgen.cc" ] || could_not "no loadgen.cc in $source; give a checkout of mlcommons/inference"
    loadgen=$(cd "$loadgen" && pwd) origin=checkout
fi

revision=NA commit_date=NA uncommitted=false
if [ -e "$loadgen/../.git" ] && git -C "$loadgen/.." rev-parse --git-dir >/dev/null 2>&1; then
    # The words that LoadGen's version_generator.py puts into the log.
    revision=$(git -C "$loadgen/.." rev-parse --short=10 HEAD)
    commit_date=$(git -C "$loadgen/.." log --format=%cI -n 1)
    [ -z "$(git -C "$loadgen" status -s -uno .)" ] || uncommitted=true
fi
submittable=false
[ "$revision" = NA ] || [ "$uncommitted" = true ] || submittable=true

# ---- What upstream's CMake generates, without writing into the checkout.
mkdir "$work/src"
cp "$loadgen"/*.cc "$loadgen"/*.h "$work/src/"
rm -f "$work/src/mlperf_conf.h" "$work/src/version_generated.cc"
(cd "$loadgen" && python3 -W ignore version_generator.py "$work/src/version_generated.cc" "$loadgen") 2>"$work/generator.log" ||
    could_not "LoadGen's version_generator.py failed: $(tail -n 1 "$work/generator.log")"
# Makes the build reproducible: the generator writes the current time, which LoadGen logs as its build date.
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
    built=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%S)
    sed -i '/LoadgenBuildDate/,/}/s/"[^"]*"/"'"$built"'"/' "$work/src/version_generated.cc"
fi
version=$(sed -n '/LoadgenVersion()/,/}/s/.*"\(.*\)".*/\1/p' "$work/src/version_generated.cc")
[ -n "$version" ] || version=$(tr -d '[:space:]' <"$loadgen/VERSION.txt" 2>/dev/null || true)
[ -n "$version" ] || could_not "the sources do not say which version of LoadGen they are"

compiled_conf=0 conf_sha256=null
if grep -q '"mlperf_conf.h"' "$work/src/test_settings_internal.cc"; then
    compiled_conf=1
    conf_sha256=\"$(sha256sum "$loadgen/mlperf.conf" | cut -d' ' -f1)\"
    python3 - "$loadgen/mlperf.conf" >"$work/src/mlperf_conf.h" <<'PYTHON'
import sys
lines = open(sys.argv[1], encoding="utf-8", newline="").read().split("\n")
quoted = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
print('const char* mlperf_conf =\n"' + '\\n"\n"'.join(quoted) + '";')
PYTHON
fi
first_token=0
grep -q 'void FirstTokenComplete' "$work/src/loadgen.h" && first_token=1

# ---- How it is built, in one JSON object: compiled in, and written beside the plug-in.
flags=(-std=gnu++14 -O3 -fPIC) # upstream's CMake: C++14 with extensions, -O3, assertions on
libraries=(-pthread)
if [ -n "$sysroot" ]; then
    # Debian's cross compiler looks into its own libc's directory first, whatever --sysroot says. Headers stay the compiler's.
    # Its libpthread.so may be a link that only holds within the system itself.
    libraries=("--sysroot=$sysroot" -l:libpthread.so.0 -l:libdl.so.2)
    for directory in "$sysroot/usr/lib/$("$cxx" -dumpmachine)" "$sysroot/lib/$("$cxx" -dumpmachine)"; do
        [ ! -d "$directory" ] || libraries+=("-L$directory" "-Wl,-rpath-link,$directory")
    done
    [ ${#libraries[@]} -gt 3 ] || could_not "no usr/lib/$("$cxx" -dumpmachine) in $sysroot; unpack that system's libc6 and libc6-dev there"
fi
libstdcxx=$(echo '#include <cstddef>' | "$cxx" "${flags[@]}" -x c++ -dM -E - | sed -n 's/^#define _GLIBCXX_RELEASE //p')
[ -n "$libstdcxx" ] || could_not "$cxx does not use libstdc++; LoadGen's samples are defined by libstdc++'s distributions"
rng_abi=libstdc++-11
[ "$libstdcxx" -ge 11 ] || rng_abi=libstdc++-10
abi=$(sed -n 's/^#define RLG_ABI_VERSION \([0-9]*\)u$/\1/p' "$here/regatta_loadgen.h")
manifest=$(printf '{"abi":%s,"loadgen_version":"%s","git_revision":"%s","git_commit_date":"%s","uncommitted_changes":%s,"source":"%s","submittable":%s,"mlperf_conf_sha256":%s,"compiler":"%s","libstdcxx":%s,"rng_abi":"%s","target":"%s"}' \
    "$abi" "$version" "$revision" "$commit_date" "$uncommitted" "$origin" "$submittable" "$conf_sha256" \
    "$("$cxx" --version | head -n 1 | tr -d '"\\')" "$libstdcxx" "$rng_abi" "$("$cxx" -dumpmachine)")
cat >"$work/src/rlg_manifest.inc" <<INC
#define RLG_COMPILED_CONF $compiled_conf
#define RLG_FIRST_TOKEN $first_token
static const char kManifest[] = R"RLG($manifest)RLG";
INC
cp "$here/shim.cc" "$here/settings.cc" "$here/settings.h" "$here/regatta_loadgen.h" "$work/src/"

# ---- Compiled where they lie, by bare names: LoadGen writes __FILE__ into its log.
cd "$work/src"
compile_one() {
    local warnings=-w # LoadGen's own warnings are upstream's
    case $1 in shim.cc | settings.cc) warnings="-Wall -Wextra -Werror" ;; esac
    # shellcheck disable=SC2086
    "$cxx" "${flags[@]}" -pthread $warnings -I. -c "$1" -o "${1%.cc}.o"
}
compile_all() {
    local pending=() failed=0 unit
    for unit in *.cc; do
        compile_one "$unit" &
        pending+=($!)
        if [ ${#pending[@]} -ge "$(nproc)" ]; then
            wait "${pending[0]}" || failed=1
            pending=("${pending[@]:1}")
        fi
    done
    for unit in "${pending[@]}"; do wait "$unit" || failed=1; done
    return $failed
}
compile_all ||
    could_not "$cxx could not compile LoadGen $version with the shim"
if [ -n "$sysroot" ]; then
    "$cxx" -x c -O2 -fPIC -Wall -Wextra -Werror -c "$here/../../../cross/older_glibc.c" -o older_glibc.o || could_not "older_glibc.c does not compile"
fi
name=libregatta_loadgen-$revision
[ "$revision" != NA ] || name=libregatta_loadgen-$version-NA
"$cxx" "${flags[@]}" -shared -o "$work/$name.so" ./*.o "${libraries[@]}" -static-libstdc++ -static-libgcc \
    -Wl,--version-script="$here/exports.map" -Wl,-Bsymbolic -Wl,--no-undefined -Wl,-s ||
    could_not "$cxx could not link the plug-in"

mkdir -p "$out"
# The plug-in last and in one step, so that a reader never loads half a file.
printf '%s\n' "$manifest" >"$work/$name.json"
cp "$work/$name.json" "$out/.$name.json.$$" && mv "$out/.$name.json.$$" "$out/$name.json"
cp "$work/$name.so" "$out/.$name.so.$$" && mv "$out/.$name.so.$$" "$out/$name.so"
glibc=$(readelf -V "$out/$name.so" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 || true)
echo "$out/$name.so: LoadGen $version @ $revision, ${rng_abi}, needs ${glibc:-an unknown glibc}"
