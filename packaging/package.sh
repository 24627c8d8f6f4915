#!/usr/bin/env bash
# Packs a built agent: a Debian package with a system service, and an archive for users without root.
#
#   package.sh --binary FILE --arch arm64|amd64 --out DIR [--version VERSION] [--helper FILE] [--cli-docs DIR] [--shims DIR]
#              [--plugins DIR] [--level 1-9]
#
# The helper that sets the device's state is `regatta-state` beside the binary, where nothing else is said; a package without
# one measures boards as they are. --cli-docs has the man pages and the completions of shells; `cli-docs` beside the binary by default,
# where cross/build.sh writes them. --shims is where crates/tensorrt/shim/all.sh put its shims, --plugins where
# crates/loadgen-official/bridge/build.sh put its plug-ins. Both are installed where the agent looks for them: in /usr/lib/regatta, and in the
# archive beside the agent. --level is gzip's: 9 by default, 1 where a test packs often.
# Needs only dpkg-deb. The same input produces the same bytes. Prints both files' paths. Exit codes: 0 done, 2 wrong use, 3 could not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wrong_use() { echo "package.sh: $1; hint: --help lists the options" >&2; exit 2; }
binary='' architecture='' out='' version='' helper='' cli_docs='' shims='' plugins='' level=9
while [ $# -gt 0 ]; do
    case $1 in -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
    [ $# -ge 2 ] || wrong_use "$1 needs a value"
    case $1 in
        --binary) binary=$2 ;;
        --arch) architecture=$2 ;;
        --out) out=$2 ;;
        --version) version=$2 ;;
        --helper) helper=$2 ;;
        --cli-docs) cli_docs=$2 ;;
        --shims) shims=$2 ;;
        --plugins) plugins=$2 ;;
        --level) level=$2 ;;
        *) wrong_use "unknown option $1" ;;
    esac
    shift 2
done
[ -f "$binary" ] || wrong_use "--binary does not name a file"
helper=${helper:-$(dirname "$binary")/regatta-state}
[ -z "$cli_docs" ] || [ -f "$cli_docs/regatta-agent.1" ] || wrong_use "--cli-docs names a directory without regatta-agent.1"
cli_docs=${cli_docs:-$(dirname "$binary")/cli-docs}
[ -n "$out" ] || wrong_use "--out is missing"
libraries=()
if [ -n "$shims" ]; then
    libraries=("$shims"/libregatta_trt-*.so)
    [ -e "${libraries[0]}" ] || wrong_use "--shims names a directory without libregatta_trt-VERSION.so"
fi
if [ -n "$plugins" ]; then
    for plugin in "$plugins"/libregatta_loadgen-*.so; do
        [ -e "$plugin" ] || wrong_use "--plugins names a directory without libregatta_loadgen-REVISION.so"
        [ -f "${plugin%.so}.json" ] || wrong_use "${plugin##*/} has no .json beside it, by which the agent finds the newest"
        libraries+=("$plugin" "${plugin%.so}.json")
    done
fi
case $level in [1-9]) ;; *) wrong_use "--level is 1 to 9" ;; esac
case $architecture in arm64 | amd64) ;; *) wrong_use "--arch is arm64 or amd64" ;; esac
command -v dpkg-deb >/dev/null || { echo "package.sh: dpkg-deb is missing; it comes with Debian and Ubuntu" >&2; exit 3; }
. "$here/archives.sh"
version=${version:-$(workspace_version)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- The Debian package.
root=$work/deb
documents=$root/usr/share/doc/regatta-agent
install -D -m 0755 "$binary" "$root/usr/bin/regatta-agent"
install -D -m 0644 "$here/regatta-agent.service" "$root/lib/systemd/system/regatta-agent.service"
if [ -f "$helper" ]; then
    install -D -m 0755 "$helper" "$root/usr/libexec/regatta-state"
    install -m 0644 "$here/regatta-state.socket" "$here/regatta-state@.service" "$root/lib/systemd/system/"
fi
if [ ${#libraries[@]} -gt 0 ]; then
    mkdir -p "$root/usr/lib/regatta"
    install -m 0644 "${libraries[@]}" "$root/usr/lib/regatta/"
fi
[ ! -f "$cli_docs/regatta-agent.1" ] || add_cli_docs regatta-agent "$cli_docs" "$root/usr" vendor-completions
# Not among the documents: minimal systems leave those out.
install -D -m 0644 "$here/../agent/agent.example.toml" "$root/usr/share/regatta-agent/agent.example.toml"
install -D -m 0644 "$here/../docs/headless.md" "$documents/headless.md"
install -m 0644 "$here/../LICENSE" "$documents/copyright"
mkdir "$root/DEBIAN"
for script in preinst postinst prerm postrm; do install -m 0755 "$here/debian/$script" "$root/DEBIAN/$script"; done
write_control "$root" regatta-agent "$version" "$architecture" "libc6 (>= 2.31), libgcc-s1 | libgcc1, adduser" \
    "runs MLPerf Inference on this device, for a Regatta coordinator" <<'DESCRIPTION'
A headless daemon: receives benchmark runs over MQTT, executes each in its own process and delivers the logs byte for
byte. Runs need no Python, no Docker and no root.
DESCRIPTION
mkdir -p "$out"
deb=$out/regatta-agent_${version}_$architecture.deb
close_package "$root" "$deb" "$level"

# ---- The archive.
name=regatta-agent-$version-$architecture
install -D -m 0755 "$binary" "$work/$name/bin/regatta-agent"
[ ${#libraries[@]} -eq 0 ] || install -m 0644 "${libraries[@]}" "$work/$name/bin/"
install -m 0644 "$here/regatta-agent.user.service" "$work/$name/regatta-agent.service"
install -m 0755 "$here/install.sh" "$work/$name/install.sh"
install -m 0644 "$here/../agent/agent.example.toml" "$here/../docs/headless.md" "$here/../LICENSE" "$work/$name/"
if [ -f "$cli_docs/regatta-agent.1" ]; then
    install -D -m 0644 -t "$work/$name/man" "$cli_docs"/regatta-agent*.1
    install -D -m 0644 -t "$work/$name/completions" "$cli_docs/regatta-agent.bash" "$cli_docs/_regatta-agent" "$cli_docs/regatta-agent.fish"
fi
close_archive "$work" "$name" "$out/$name.tar.gz" "$level"
printf '%s\n' "$deb" "$out/$name.tar.gz"
