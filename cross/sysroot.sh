#!/usr/bin/env bash
# Unpacks the C library of Debian 11 (glibc 2.31, as JetPack 5 has it) to link against, and prints its path.
#
#   sysroot.sh arm64|amd64
#
# Three packages of 4.5 MB, fetched by apt with a configuration of its own and checked against Debian's archive keys; the
# system's apt is not touched and no root is needed. Kept in ${XDG_CACHE_HOME:-~/.cache}/regatta. DEBIAN_MIRROR changes the
# mirror. Exit codes: 0 there, 2 wrong use, 3 could not.
set -euo pipefail
architecture=${1:-}
case $architecture in
    arm64) triple=aarch64-linux-gnu ;;
    amd64) triple=x86_64-linux-gnu ;;
    *) echo "sysroot.sh: say arm64 or amd64" >&2; exit 2 ;;
esac
could_not() { echo "sysroot.sh: $1" >&2; exit 3; }

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
sysroot=$cache/sysroot-debian11-$architecture
if [ -f "$sysroot/ready" ]; then
    printf '%s\n' "$sysroot"
    exit 0
fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || could_not "apt-get and dpkg-deb are missing; they unpack Debian 11's C library"
[ -f "$keyring" ] || could_not "$keyring is missing; on Debian or Ubuntu: apt-get install debian-archive-keyring"

mkdir -p "$cache"
work=$(mktemp -d "$cache/sysroot.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/packages" "$work/root"
echo "deb [signed-by=$keyring] $mirror bullseye main" >"$work/sources.list"
options=(
    -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/nonexistent
    -o "Dir::State=$work/state" -o "Dir::State::Lists=$work/state/lists" -o Dir::State::status=/dev/null -o "Dir::Cache=$work/cache"
    -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o Acquire::Languages=none
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o "APT::Sandbox::User=$(id -un)"
    -o APT::Update::Error-Mode=any -o Acquire::Retries=2
)
apt-get -qq "${options[@]}" update >&2 || could_not "$mirror has no Debian 11 for $architecture, or cannot be reached${http_proxy:+ by the proxy $http_proxy}; DEBIAN_MIRROR names another"
(cd "$work/packages" && apt-get -qq "${options[@]}" download libc6 libc6-dev libgcc-s1 >&2) || could_not "apt could not fetch libc6, libc6-dev and libgcc-s1"
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
