#!/bin/sh
# Installs or upgrades the coordinator on a workstation. Run it in the unpacked archive.
#
#   sh install.sh                  into ~/.local without root, into /usr/local as root
#   sh install.sh --prefix DIR     into DIR/bin and DIR/share
#   sh install.sh --remove         removes what it installed; workspaces remain
#
# Exit codes: 0 installed, 2 wrong usage, 3 failure. The previous version is kept if the new one does not run here.
set -eu
cd "$(dirname "$0")"
say() { echo "install.sh: $*" >&2; }
wrong_use() { say "$1; hint: the first lines of install.sh list the options"; exit 2; }
could_not() { say "$1"; exit 3; }

prefix=$HOME/.local remove=
[ "$(id -u)" != 0 ] || prefix=/usr/local
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) prefix=${2:-}; [ -n "$prefix" ] || wrong_use "--prefix needs a directory"; shift ;;
        --remove) remove=yes ;;
        -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' install.sh; exit 0 ;;
        *) wrong_use "unknown option $1" ;;
    esac
    shift
done
case $prefix in /*) ;; *) wrong_use "--prefix must be an absolute path" ;; esac

if [ -n "$remove" ]; then
    rm -rf "$prefix/bin/regatta" "$prefix/share/regatta/packages" "$prefix/share/bash-completion/completions/regatta" \
        "$prefix/share/zsh/site-functions/_regatta" "$prefix/share/fish/vendor_completions.d/regatta.fish"
    # The pages of an agent that is installed here as well are kept.
    for page in "$prefix"/share/man/man1/regatta.1.gz "$prefix"/share/man/man1/regatta-*.1.gz; do
        case $page in */regatta-agent*) ;; *) rm -f "$page" ;; esac
    done
    rmdir "$prefix/share/regatta" 2>/dev/null || true
    say "removed from $prefix; workspaces remain"
    exit 0
fi

[ -x bin/regatta ] || could_not "bin/regatta is not beside this script; run it in the unpacked archive"
said=$(bin/regatta --version 2>&1) || could_not "regatta does not run on this machine ($(uname -m)): $said; hint: it needs Debian 12, Ubuntu 22.04 or later and their libssl3"
mkdir -p "$prefix/bin" "$prefix/share" || could_not "cannot write to $prefix; hint: choose another directory with --prefix DIR; ~/.local needs no root"

# Packages of another version must not remain beside the new ones.
rm -rf "$prefix/share/regatta/packages"
cp -R share/. "$prefix/share/" || could_not "$prefix/share cannot be written; hint: is there space left on its disk?"
# Copied under another name and renamed, because a running program cannot be written to.
cp bin/regatta "$prefix/bin/.regatta.new" && mv "$prefix/bin/.regatta.new" "$prefix/bin/regatta" || {
    rm -f "$prefix/bin/.regatta.new"
    could_not "$prefix/bin/regatta cannot be written"
}
say "$said is installed in $prefix"
case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) say "hint: $prefix/bin is not in PATH yet: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
say "next: regatta init, then regatta serve, then regatta device deploy NAME USER@BOARD"
