# Goes back to what was there before: configuration, enrollment, and the program where a new one was installed.
# Words: system|user PROGRAM CONFIGURATION STATE installed|as-it-was [USER].
scope=$1 program=$2 config=$3 state=$4
# USER owns STATE and may put links into it: everything there is done as that user.
as_owner() { "$@"; }
if [ -n "${6:-}" ]; then
    owner=$6
    as_owner() { runuser -u "$owner" -- "$@"; }
fi
put_back='if [ -f "$1.before-deploy" ]; then mv -fT "$1.before-deploy" "$1"; fi'
sh -c "$put_back" sh "$config" || exit 1
as_owner sh -c "$put_back" sh "$state/enrollment.json" || exit 1
[ "$5" = installed ] || exit 0
case $scope in
    system)
        keep=/usr/lib/regatta-agent
        [ -x "$keep/previous/regatta-agent" ] || exit 3
        cp -p "$keep/previous/regatta-agent" "$program.old" && sync "$program.old" && mv -f "$program.old" "$program" || exit 1
        # A unit or helper that the previous version did not have would run beside it.
        units=/lib/systemd/system
        for part in "$units/regatta-agent.service" "$units/regatta-state.socket" "$units/regatta-state@.service" /usr/libexec/regatta-state; do
            kept=$keep/previous/${part##*/}
            if [ -f "$kept" ]; then
                cp -p "$kept" "$part.old" && sync "$part.old" && mv -f "$part.old" "$part"
            else
                rm -f "$part"
            fi
        done
        # Shims and plug-ins are of the program's version, and all that lay there were kept.
        rm -f /usr/lib/regatta/libregatta_*
        for kept in "$keep"/previous/libregatta_*; do
            library=/usr/lib/regatta/${kept##*/}
            if [ -f "$kept" ]; then mkdir -p /usr/lib/regatta && cp -p "$kept" "$library.old" && sync "$library.old" && mv -f "$library.old" "$library"; fi
        done
        # dpkg's own account is wrong from here on; the package's scripts know this mark.
        touch "$keep/rolled-back"
        ;;
    user)
        [ -x "$program.previous" ] || exit 3
        rm -f "$(dirname "$program")"/libregatta_*.so "$(dirname "$program")"/libregatta_*.json
        for kept in "$(dirname "$program")"/libregatta_*.previous "$program.previous"; do
            if [ -e "$kept" ]; then mv -f "$kept" "${kept%.previous}"; fi
        done
        ;;
esac
