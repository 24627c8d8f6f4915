#!/usr/bin/env bash
# Builds shims for several versions of TensorRT side by side, to be packed with the agent (packaging/package.sh --shims):
#
#   all.sh --out DIR [--target aarch64] [--sysroot DIR] [--cxx COMPILER] HEADERS...
#
# HEADERS is, once for each version, a directory that has NvInfer.h and NvOnnxParser.h somewhere below it, or Debian packages of
# them (JetPack's libnvinfer-headers-dev and libnvonnxparsers-dev, for whichever machine); or `rtx` or `enterprise` as in build.sh.
# Prints the shims' paths and, on standard error, the versions in the file `versions` beside this script that were not built.
# Exit codes: 0 built, 2 wrong use, 3 could not.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
wrong_use() { echo "all.sh: $1; see --help" >&2; exit 2; }
could_not() { echo "all.sh: $1" >&2; exit 3; }

out='' options=() given=()
while [ $# -gt 0 ]; do
    case $1 in
        --out) out=${2:-}; shift ;;
        --target | --sysroot | --cxx) options+=("$1" "${2:-}"); shift ;;
        -*) wrong_use "unknown option $1" ;;
        *) given+=("$1") ;;
    esac
    shift || wrong_use "the last option needs a value"
done
[ -n "$out" ] || wrong_use "--out is missing"
[ ${#given[@]} -gt 0 ] || wrong_use "no headers were named"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Words for build.sh: where below a directory, or in the packages that lie in it, the headers are.
words_for() {
    local place=$1 unpacked=$work/$2 package name found
    mkdir "$unpacked"
    for package in "$place"/*.deb; do
        [ -e "$package" ] || continue
        command -v dpkg-deb >/dev/null || could_not "dpkg-deb is missing; it unpacks $package"
        dpkg-deb -x "$package" "$unpacked" || could_not "$package cannot be unpacked"
    done
    words=()
    for name in NvInfer.h NvOnnxParser.h; do
        mapfile -t found < <(find "$place" "$unpacked" -name "$name" -printf '%h\n' | sort -u)
        [ ${#found[@]} -ne 0 ] || could_not "$place has no $name"
        [ ${#found[@]} -eq 1 ] || could_not "$place has more than one $name (${found[*]}): name a directory for each version"
        words+=(--headers "${found[0]}")
    done
}

built=() number=0
for one in "${given[@]}"; do
    number=$((number + 1))
    case $one in
        rtx | enterprise) words=(--crate "$one") ;;
        *) [ -d "$one" ] || wrong_use "$one is no directory"; words_for "$one" $number ;;
    esac
    shim=$("$here/build.sh" "${words[@]}" "${options[@]}" --out "$out")
    printf '%s\n' "$shim"
    version=${shim##*/libregatta_trt-}
    built+=("${version%.*.so}")
done

missing=()
while read -r version _; do
    [[ $version = \#* || " ${built[*]} " = *" $version "* ]] || missing+=("$version")
done <"$here/versions"
[ ${#missing[@]} -eq 0 ] || printf 'not compiled here: %s\n' "${missing[*]}" >&2
