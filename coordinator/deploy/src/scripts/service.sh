# The daemon of the system or of this user. Words: system|user start|restart|watch|log PROGRAM CONFIGURATION STATE. `watch` says
# whether it runs. Where no systemd serves the user, the daemon is a process of its own, and a line says so.
scope=$1 verb=$2 program=$3 config=$4 state=$5
unit=regatta-agent.service
: "${XDG_RUNTIME_DIR:=/run/user/$(id -u)}"
export XDG_RUNTIME_DIR
case $scope in
    system)
        control() { systemctl "$@"; }
        journal() { journalctl -u "$unit" "$@"; }
        ;;
    user)
        control() { systemctl --user "$@"; }
        journal() { journalctl --user -u "$unit" "$@"; }
        ;;
esac
managed() { [ -d /run/systemd/system ] && control show-environment >/dev/null 2>&1; }

# ---- Without systemd.
running() {
    for process in /proc/[0-9]*; do
        case $(readlink "$process/exe" 2>/dev/null) in
            "$program" | "$program (deleted)") echo "${process#/proc/}" ;;
        esac
    done
}
# A daemon whose program was replaced runs the previous one.
is_outdated() {
    for process in $(running); do
        case $(readlink "/proc/$process/exe" 2>/dev/null) in *" (deleted)") return 0 ;; esac
    done
    return 1
}
end_all() {
    for process in $(running); do kill "$process" 2>/dev/null; done
    tries=0
    while [ -n "$(running)" ] && [ "$tries" -lt 300 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    for process in $(running); do kill -9 "$process" 2>/dev/null; done
}
begin() {
    setsid "$program" serve --config "$config" >>"$state/agent.log" 2>&1 </dev/null &
    sleep 1
    [ -n "$(running)" ]
}

if managed; then
    case $verb in
        watch) control --quiet is-active "$unit" ;;
        log) journal -n 5 --no-pager -o cat ;;
        start) control --quiet enable "$unit" && control start "$unit" ;;
        restart) control daemon-reload && control --quiet enable "$unit" && control restart "$unit" ;;
    esac
    code=$?
    if [ "$scope" = user ] && [ "$verb" != log ] && [ "$verb" != watch ] && [ "$code" -eq 0 ]; then
        user=$(id -un)
        if [ ! -e "/var/lib/systemd/linger/$user" ] && ! loginctl enable-linger 2>/dev/null; then
            echo "note: it ends when $user logs out; 'sudo loginctl enable-linger $user' on the board changes that"
        fi
    fi
    exit "$code"
fi
# Root starts no daemon in a directory of another user, and reads no log there.
if [ "$scope" = system ]; then
    echo "systemd does not answer on this board" >&2
    exit 1
fi
case $verb in
    watch) [ -n "$(running)" ] ;;
    log) tail -n 5 "$state/agent.log" 2>/dev/null ;;
    start)
        if is_outdated; then end_all; fi
        [ -n "$(running)" ] || begin
        ;;
    restart) end_all; begin ;;
esac
code=$?
if [ "$code" -eq 0 ] && { [ "$verb" = start ] || [ "$verb" = restart ]; }; then
    echo "note: no systemd serves this user, so that nothing starts the daemon again after a reboot"
fi
exit "$code"
