#!/usr/bin/env bash
# Builds the TensorRT shim for one version of TensorRT. Its headers are NVIDIA's and are not part of this repository:
#
#   build.sh --headers DIR [--headers DIR ...] --out DIR       NvInfer.h and NvOnnxParser.h by path, such as JetPack's; CUDA's are not needed
#   build.sh --crate rtx|enterprise --out DIR                  those of headers.sh, for tests
#
# Options: --target aarch64 (Debian's cross compiler), --sysroot DIR (link against an older system's libc), --cxx COMPILER.
# Writes libregatta_trt-<version>.so, which needs no libstdc++ and opens TensorRT itself.
# Exit codes: 0 built, 2 wrong use, 3 could not.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd)

wrong_use() { echo "build.sh: $1; see --help" >&2; exit 2; }
could_not() { echo "build.sh: $1" >&2; exit 3; }

headers=() crate='' out='' target=native sysroot='' cxx=${CXX:-}
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || wrong_use "$1 needs a value"
    case $1 in
        --headers) headers+=("$2") ;;
        --crate) crate=$2 ;;
        --out) out=$2 ;;
        --target) target=$2 ;;
        --sysroot) sysroot=$2 ;;
        --cxx) cxx=$2 ;;
        *) wrong_use "unknown option $1" ;;
    esac
    shift 2
done
[ -n "$out" ] || wrong_use "--out is missing"
case $target in
    native) cxx=${cxx:-g++} ;;
    aarch64) cxx=${cxx:-aarch64-linux-gnu-g++} ;;
    *) wrong_use "unknown target $target; known is aarch64" ;;
esac
command -v "$cxx" >/dev/null || could_not "$cxx is missing; on Debian or Ubuntu: apt-get install g++ (g++-aarch64-linux-gnu for --target aarch64)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ -z "$crate" ] || headers+=("$("$here/headers.sh" "$crate")")
[ ${#headers[@]} -gt 0 ] || wrong_use "give --headers or --crate"

includes=()
for directory in "${headers[@]}"; do includes+=(-isystem "$directory"); done
includes+=(-idirafter "$here/cuda")
flags=(-std=c++17 -O2 -fPIC -Wall -Wextra -Wno-deprecated-declarations)
compile() { "$cxx" "$@" >&2 || could_not "$cxx could not build the shim; do the directories hold NvInfer.h and NvOnnxParser.h?"; }
compile "${flags[@]}" "${includes[@]}" -c "$here/shim.cc" -o "$work/shim.o"
linked=("$work/shim.o")
if [ -n "$sysroot" ]; then
    # As for the agent (docs/decisions/0060), and with what a newer compiler's libraries ask of a libc that has it not.
    triple=$("$cxx" -dumpmachine)
    compile -x c -O2 -fPIC -Wall -Wextra -Werror -c "$here/../../../cross/older_glibc.c" -o "$work/older_glibc.o"
    linked+=("$work/older_glibc.o" --sysroot="$sysroot" -B"$sysroot/usr/lib/$triple" -L"$sysroot/usr/lib/$triple" -L"$sysroot/lib/$triple")
fi
compile -shared "${linked[@]}" -static-libstdc++ -static-libgcc -s -Wl,--gc-sections -Wl,--version-script="$here/exports.map" -Wl,-z,defs -o "$work/shim.so" -ldl -lpthread

version=$(printf '#include "NvInferVersion.h"\n#ifdef TRT_MAJOR_RTX\nrtx-\n#endif\nNV_TENSORRT_MAJOR.NV_TENSORRT_MINOR.NV_TENSORRT_PATCH\n' | "$cxx" -E -P "${includes[@]}" -x c++ - | tr -d ' \n')
mkdir -p "$out"
mv "$work/shim.so" "$out/libregatta_trt-$version.so"
echo "$out/libregatta_trt-$version.so"
