#!/usr/bin/env bash
# Checks that the package's scripts go back to exactly the files of the version before: program, helper and units, also those that the version
# before did not have. The scripts run on a directory in place of the system. Exit codes: 0 it holds, 1 it does not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
program=usr/bin/regatta-agent
service=lib/systemd/system/regatta-agent.service
helper=(usr/libexec/regatta-state lib/systemd/system/regatta-state.socket lib/systemd/system/regatta-state@.service)

# install_version VERSION FILE...
install_version() {
    local version=$1 file
    shift
    for file in "$@"; do
        mkdir -p "$root/$(dirname "$file")"
        echo "$version" >"$root/$file"
        chmod 0755 "$root/$file"
    done
}
files() { (cd "$root" && find usr/bin usr/libexec lib -type f -printf '%p ' -exec cat {} \; | LC_ALL=C sort); }
# A script with this directory's paths, and without a service manager.
elsewhere() {
    sed -e "s#/usr/#$root/usr/#g" -e "s#\([ \"]\)/lib/systemd#\1$root/lib/systemd#g" -e 's#/run/systemd/system#/nonexistent#g' "$here/debian/$1"
}

for case in "with a helper" "without a helper"; do
    rm -rf "$root"
    mkdir -p "$root/usr/libexec" "$root/usr/lib/regatta" "$root/usr/lib/regatta-agent"
    install_version old "$program" "$service"
    [ "$case" = "without a helper" ] || install_version old "${helper[@]}"
    files >"$work/before"
    elsewhere preinst >"$work/preinst"
    sh "$work/preinst" upgrade 1
    install_version new "$program" "$service" "${helper[@]}"
    # The functions alone, and the one that goes back.
    elsewhere postinst | sed '/^case \$1 in/,$d' >"$work/roll-back"
    echo roll_back >>"$work/roll-back"
    sh "$work/roll-back"
    if ! files | diff "$work/before" -; then
        echo "check-roll-back.sh: a version $case is not restored" >&2
        exit 1
    fi
done
