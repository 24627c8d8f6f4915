#!/usr/bin/env bash
# Checks a built Debian package without installing it: its scripts, its files and their owners, its unit's syntax and hardening;
# and that it brings these shims and plug-ins, each with its .json, and no others, to where the agent looks for them.
#
#   check-package.sh FILE.deb [SHIM|PLUGIN|JSON...]
#
# Needs dpkg-deb, systemd-analyze and readelf. Exit codes: 0 it holds, 1 it does not, 2 wrong use.
set -euo pipefail
[ -f "${1:-}" ] || { echo "check-package.sh: name the package to check" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
package=$1
shift
# systemd's own measure, 0 (best) to 10; docs/headless.md says what is left open and why.
threshold=2.3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() {
    printf 'check-package.sh: %s\n' "$*" >&2
    bad=1
}

dpkg-deb -R "$package" "$work"
for script in preinst postinst prerm postrm; do
    [ -x "$work/DEBIAN/$script" ] || complain "$script cannot be run"
    sh -n "$work/DEBIAN/$script" || complain "$script does not parse"
done
(cd "$work" && md5sum --quiet -c DEBIAN/md5sums) || complain "md5sums does not fit the files"
foreign=$(dpkg-deb -c "$package" | grep -v ' root/root ' || true)
[ -z "$foreign" ] || complain "not root's: $foreign"

for page in regatta-agent regatta-agent-serve regatta-agent-enroll; do
    gzip -dc "$work/usr/share/man/man1/$page.1.gz" 2>/dev/null | grep -q '^\.TH' || complain "the man page $page(1) is missing"
done
for completion in bash-completion/completions/regatta-agent zsh/vendor-completions/_regatta-agent fish/vendor_completions.d/regatta-agent.fish; do
    [ -s "$work/usr/share/$completion" ] || complain "/usr/share/$completion is missing"
done
[ -x "$work/usr/libexec/regatta-state" ] || complain "the helper regatta-state is missing"
foreign=$(find "$work/usr" "$work/lib" -perm /6000)
[ -z "$foreign" ] || complain "setuid or setgid: $foreign"

installed=$(find "$work/usr/lib/regatta" -type f -printf '%f\n' 2>/dev/null | sort || true)
[ "$installed" = "$(for file in "$@"; do basename "$file"; done | sort)" ] || complain "/usr/lib/regatta has: $(echo ${installed:-no files})"
for file in "$@"; do cmp -s "$file" "$work/usr/lib/regatta/$(basename "$file")" || complain "$file is not in it as it is"; done
[ $# -eq 0 ] || "$here/../cross/check-symbols.sh" "$work"/usr/lib/regatta/*.so || bad=1

# Syntax and hardening of one unit, under the name that systemd would start it by.
check_unit() {
    local file=$1 unit=$2 said exposure
    cp "$work/lib/systemd/system/$file" "$work/$unit"
    # The program is for another machine, and the manual in a package that is not installed here.
    sed -i -e 's#^ExecStart=/usr/[a-z]*/regatta-[a-z]*#ExecStart=/bin/true#' -e '/^Documentation=/d' "$work/$unit"
    said=$(systemd-analyze verify --man=no "$work/$unit" 2>&1 | grep -F "$unit" || true)
    [ -z "$said" ] || complain "$said"
    exposure=$(systemd-analyze security --offline=true "$work/$unit" 2>/dev/null | sed -n 's/.*Overall exposure level[^:]*: \([0-9.]*\).*/\1/p')
    [ -n "$exposure" ] || complain "systemd-analyze says no exposure level of $unit"
    awk -v level="${exposure:-10}" -v most="$threshold" 'BEGIN { exit !(level <= most) }' || complain "$unit: exposure $exposure, promised is $threshold"
    printf '%s: exposure %s of 10\n' "$unit" "$exposure"
}
check_unit regatta-agent.service regatta-agent.service
check_unit regatta-state@.service regatta-state@check.service
exit $bad
