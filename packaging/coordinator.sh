#!/usr/bin/env bash
# Packs a built coordinator: a Debian package, and an archive with install.sh for ~/.local or /usr/local.
#
#   coordinator.sh --binary FILE --arch arm64|amd64 --out DIR [--documenter FILE] [--version VERSION] [--packages DIR] [--level 1-9]
#
# --packages names the directory of the agent's packages, by default DIR of --out. Both results include the packages of the same version, so that
# `regatta device deploy` finds one for each board. --documenter writes the man pages and completions: the same program for this machine, by default
# --binary. --level is gzip's level, by default 9. Needs dpkg-deb and readelf. The same input produces the same bytes. Prints the paths of both
# files. Exit codes: 0 done, 2 wrong usage, 3 failure.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wrong_use() { echo "coordinator.sh: $1; hint: --help lists the options" >&2; exit 2; }
could_not() { echo "coordinator.sh: $1" >&2; exit 3; }
binary='' architecture='' out='' documenter='' version='' packages='' level=9
while [ $# -gt 0 ]; do
    case $1 in -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
    [ $# -ge 2 ] || wrong_use "$1 needs a value"
    case $1 in
        --binary) binary=$2 ;;
        --arch) architecture=$2 ;;
        --out) out=$2 ;;
        --documenter) documenter=$2 ;;
        --version) version=$2 ;;
        --packages) packages=$2 ;;
        --level) level=$2 ;;
        *) wrong_use "unknown option $1" ;;
    esac
    shift 2
done
[ -f "$binary" ] || wrong_use "--binary does not name a file"
[ -n "$out" ] || wrong_use "--out is missing"
case $architecture in arm64 | amd64) ;; *) wrong_use "--arch must be arm64 or amd64" ;; esac
for tool in "dpkg-deb dpkg" "readelf binutils"; do
    command -v "${tool% *}" >/dev/null || could_not "${tool% *} is missing; on Debian or Ubuntu: apt-get install ${tool#* }"
done
. "$here/archives.sh"
version=${version:-$(workspace_version)}
packages=${packages:-$out}
documenter=${documenter:-$binary}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# In a separate directory, because the program must not write into the user's home.
docs=$work/cli-docs
"$documenter" man --output "$docs" >/dev/null || could_not "$documenter does not run on this machine, so its man pages cannot be written"
for shell in bash:regatta.bash zsh:_regatta fish:regatta.fish; do "$documenter" completions "${shell%%:*}" >"$docs/${shell#*:}"; done

# fill TREE ZSH: installs the files into a prefix such as /usr, with zsh's functions in share/zsh/ZSH.
fill() {
    local tree=$1 package
    install -D -m 0755 "$binary" "$tree/bin/regatta"
    add_cli_docs regatta "$docs" "$tree" "$2"
    install -d "$tree/share/regatta/packages"
    for package in "$packages"/regatta-agent_"$version"_*.deb "$packages"/regatta-agent-"$version"-*.tar.gz; do
        [ ! -e "$package" ] || install -m 0644 "$package" "$tree/share/regatta/packages/"
    done
}

# The Debian packages of the program's libraries, and the C library that its symbols need.
dependencies() {
    local library list=()
    for library in $(readelf -d -W "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        case $library in
            libssl.so.3 | libcrypto.so.3) list+=("libssl3t64 | libssl3") ;;
            libz.so.1) list+=("zlib1g") ;;
            libgcc_s.so.1) list+=("libgcc-s1") ;;
            libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux-*) ;;
            *) could_not "$binary needs $library, whose Debian package is unknown" ;;
        esac
    done
    list+=("libc6 (>= $(readelf -V -W "$binary" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1))")
    printf '%s\n' "${list[@]}" | sort -u | paste -sd, | sed 's/,/, /g'
}

mkdir -p "$out"
# ---- The Debian package.
root=$work/deb
fill "$root/usr" vendor-completions
install -D -m 0644 "$here/../LICENSE" "$root/usr/share/doc/regatta/copyright"
install -m 0644 "$here/../CHANGELOG.md" "$root/usr/share/doc/regatta/"
write_control "$root" regatta "$version" "$architecture" "$(dependencies)" "measures a fleet of devices with MLPerf Inference" <<'DESCRIPTION'
The coordinator of Regatta: requests benchmark runs on devices over MQTT, receives and verifies their logs, and turns them into
a submission. Brings the agent's packages, which `regatta device deploy` installs on boards.
DESCRIPTION
deb=$out/regatta_${version}_$architecture.deb
close_package "$root" "$deb" "$level"

# ---- The archive.
name=regatta-$version-$architecture
fill "$work/$name" site-functions
install -m 0755 "$here/workstation/install.sh" "$work/$name/install.sh"
install -m 0644 "$here/../LICENSE" "$here/../CHANGELOG.md" "$here/../docs/headless.md" "$work/$name/"
close_archive "$work" "$name" "$out/$name.tar.gz" "$level"
count=$(find "$work/$name/share/regatta/packages" -type f | wc -l)
[ "$count" -gt 0 ] || echo "coordinator.sh: $packages has no package of the agent $version, so none is included" >&2
printf '%s\n' "$deb" "$out/$name.tar.gz"
