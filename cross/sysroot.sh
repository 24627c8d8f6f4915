#!/usr/bin/env bash
# Unpacks libraries of Debian to link against, and prints the path of the directory.
#
#   sysroot.sh arm64|amd64 [agent|coordinator]
#
# For the agent, which is the default: the C library of Debian 11 (glibc 2.31, as in JetPack 5). For the coordinator: the C library and OpenSSL of
# Debian 12. apt fetches the packages (4.5 and 12 MB) with a separate configuration and checks them against Debian's archive keys; the system's
# apt is not changed and no root is needed. Kept in ${XDG_CACHE_HOME:-~/.cache}/regatta. DEBIAN_MIRROR changes the mirror. Exit codes: 0 done,
# 2 wrong usage, 3 failure.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;; esac
architecture=${1:-}
case $architecture in
    arm64) triple=aarch64-linux-gnu ;;
    amd64) triple=x86_64-linux-gnu ;;
    *) echo "sysroot.sh: name arm64 or amd64" >&2; exit 2 ;;
esac
case ${2:-agent} in
    agent) debian=11 codename=bullseye packages=(libc6 libc6-dev libgcc-s1) ;;
    coordinator) debian=12 codename=bookworm packages=(libc6 libc6-dev libgcc-s1 linux-libc-dev libssl3 libssl-dev) ;;
    *) echo "sysroot.sh: name agent or coordinator" >&2; exit 2 ;;
esac
could_not() { echo "sysroot.sh: $1" >&2; exit 3; }

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
sysroot=$cache/sysroot-debian$debian-$architecture
if [ -f "$sysroot/ready" ]; then
    printf '%s\n' "$sysroot"
    exit 0
fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || could_not "apt-get and dpkg-deb are missing; they unpack Debian's C library"
[ -f "$keyring" ] || could_not "$keyring is missing; on Debian or Ubuntu: apt-get install debian-archive-keyring"

mkdir -p "$cache"
work=$(mktemp -d "$cache/sysroot.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/packages" "$work/root"
echo "deb [signed-by=$keyring] $mirror $codename main" >"$work/sources.list"
options=(
    -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/nonexistent
    -o "Dir::State=$work/state" -o "Dir::State::Lists=$work/state/lists" -o Dir::State::status=/dev/null -o "Dir::Cache=$work/cache"
    -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o Acquire::Languages=none
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o "APT::Sandbox::User=$(id -un)"
    -o APT::Update::Error-Mode=any -o Acquire::Retries=2
)
apt-get -qq "${options[@]}" update >&2 || could_not "$mirror has no Debian $debian for $architecture, or cannot be reached${http_proxy:+ by the proxy $http_proxy}; DEBIAN_MIRROR names another"
(cd "$work/packages" && apt-get -qq "${options[@]}" download "${packages[@]}" >&2) || could_not "apt could not fetch ${packages[*]}"
for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$work/root"; done

# Absolute links point out of the sysroot: made relative to it.
library=$work/root/usr/lib/$triple
while IFS= read -r link; do
    ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$work/root$(readlink "$link")")" "$link"
done < <(find "$work/root" -type l -lname '/*')
[ -f "$library/libc_nonshared.a" ] || could_not "Debian's libc6-dev has no libc_nonshared.a in usr/lib/$triple"
touch "$work/root/ready"
rm -rf "$sysroot"
mv "$work/root" "$sysroot"
printf '%s\n' "$sysroot"
