# Goes back to what was there before: configuration, enrolment, and the program where a new one was installed.
# Words: system|user PROGRAM CONFIGURATION STATE installed|as-it-was.
scope=$1 program=$2 config=$3 state=$4
for file in "$config" "$state/enrolment.json"; do
    if [ -f "$file.before-deploy" ]; then mv -f "$file.before-deploy" "$file"; fi
done
[ "$5" = installed ] || exit 0
case $scope in
    system)
        keep=/usr/lib/regatta-agent
        [ -x "$keep/previous/regatta-agent" ] || exit 3
        cp -p "$keep/previous/regatta-agent" "$program.old" && sync "$program.old" && mv -f "$program.old" "$program" || exit 1
        unit=regatta-agent.service
        if [ -f "$keep/previous/$unit" ]; then cp -p "$keep/previous/$unit" "/lib/systemd/system/$unit"; fi
        helper=/usr/libexec/regatta-state
        if [ -f "$keep/previous/regatta-state" ]; then
            cp -p "$keep/previous/regatta-state" "$helper.old" && sync "$helper.old" && mv -f "$helper.old" "$helper"
        fi
        # dpkg's own account is wrong from here on; the package's scripts know this mark.
        touch "$keep/rolled-back"
        ;;
    user)
        [ -x "$program.previous" ] || exit 3
        mv -f "$program.previous" "$program"
        ;;
esac
