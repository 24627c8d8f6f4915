#!/bin/sh
# Installs or upgrades the agent for this user, without root. Run it in the unpacked archive.
#
#   ./install.sh              into ~/.local/bin, ~/.config/regatta, ~/.local/state/regatta
#   ./install.sh --remove     removes the program; runs, logs, key and configuration remain
#
# If the new version does not start, the previous one is restored. Exit codes: 0 installed, 1 restored, 2 wrong use, 3 failure.
set -eu
cd "$(dirname "$0")"
bin=$HOME/.local/bin
program=$bin/regatta-agent
config=$HOME/.config/regatta/agent.toml
state=$HOME/.local/state/regatta
units=$HOME/.config/systemd/user
share=$HOME/.local/share
unit=regatta-agent.service
say() { echo "regatta-agent: $*" >&2; }
managed() { command -v systemctl >/dev/null && systemctl --user show-environment >/dev/null 2>&1; }

if [ "${1:-}" = --remove ]; then
    # What is half installed has no unit to stop, and is taken away all the same.
    if managed; then systemctl --user --quiet disable --now "$unit" || true; fi
    rm -f "$program" "$program.previous" "$units/$unit" "$bin"/libregatta_*.so "$bin"/libregatta_*.json "$bin"/libregatta_*.previous \
        "$share"/man/man1/regatta-agent*.1 "$share/bash-completion/completions/regatta-agent" "$share/zsh/site-functions/_regatta-agent" \
        "$share/fish/vendor_completions.d/regatta-agent.fish"
    say "removed; $state and $config remain"
    exit 0
fi
[ $# -eq 0 ] || { say "unknown option $1; hint: the first lines of install.sh list the options"; exit 2; }
[ "$(id -u)" != 0 ] || { say "this script installs for one user; hint: as root, install the .deb"; exit 2; }

comes_up() {
    "$program" --version >/dev/null || return 1
    managed || return 0
    systemctl --user daemon-reload
    systemctl --user restart "$unit" || return 1
    started=$(systemctl --user show --property MainPID --value "$unit")
    sleep 3
    [ "$started" != 0 ] && [ "$(systemctl --user show --property MainPID --value "$unit")" = "$started" ]
}

# Beside the old one and renamed: a program that runs cannot be written to, and a full disk leaves the old one whole.
put() {
    cp -p "bin/$1" "$bin/$1.new" && sync "$bin/$1.new" && mv "$bin/$1.new" "$bin/$1" || { rm -f "$bin/$1.new"; say "$bin/$1 cannot be written"; exit 3; }
}

mkdir -p "$bin" "$(dirname "$config")" "$state" "$units" || exit 3
# The program's directory has its TensorRT shims and LoadGen plug-ins, which are of its version.
rm -f "$bin"/libregatta_*.previous
for kept in "$program" "$bin"/libregatta_*.so "$bin"/libregatta_*.json; do
    if [ -e "$kept" ]; then cp -p "$kept" "$kept.previous"; fi
done
rm -f "$bin"/libregatta_*.so "$bin"/libregatta_*.json
for file in bin/*; do put "${file#bin/}"; done
cp regatta-agent.service "$units/$unit"
if [ -d man ]; then
    # The agent runs without them, so they do not end an upgrade.
    mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d" &&
        cp man/*.1 "$share/man/man1/" &&
        cp completions/regatta-agent.bash "$share/bash-completion/completions/regatta-agent" &&
        cp completions/_regatta-agent "$share/zsh/site-functions/" &&
        cp completions/regatta-agent.fish "$share/fish/vendor_completions.d/" ||
        say "the man pages and completions could not be installed in $share"
fi
if [ ! -e "$config" ]; then
    sed -e "s/^name = .*/name = \"$(hostname)\"/" -e "s|^state_dir = .*|state_dir = \"$state\"|" agent.example.toml >"$config"
    say "wrote $config; hint: enroll the board with '$program enroll TOKEN'"
fi
if managed; then systemctl --user --quiet enable "$unit"; else say "this user has no systemd; hint: start the agent with '$program serve --config $config'"; fi
if comes_up; then
    say "$("$program" --version) is installed; hint: after 'loginctl enable-linger' it runs without a login"
    exit 0
fi
if [ ! -x "$program.previous" ]; then
    say "the daemon does not start; hint: 'journalctl --user -u regatta-agent' shows the reason"
    exit 3
fi
rm -f "$bin"/libregatta_*.so "$bin"/libregatta_*.json
for kept in "$bin"/libregatta_*.previous "$program.previous"; do
    if [ -e "$kept" ]; then mv "$kept" "${kept%.previous}"; fi
done
if comes_up; then say "the new version does not start; the previous one runs again"; else say "neither version starts"; fi
exit 1
