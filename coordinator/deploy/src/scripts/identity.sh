# Who the device is, as JSON; nothing where no agent is installed yet. Words: PROGRAM CONFIGURATION STATE [USER].
# USER owns STATE and may put links into it: what is read there is read as that user.
as_owner() { "$@"; }
if [ -n "${4:-}" ] && id -u "$4" >/dev/null 2>&1; then
    owner=$4
    as_owner() { runuser -u "$owner" -- "$@"; }
fi
if [ -x "$1" ] && [ -f "$2" ] && as_owner "$1" identity --config "$2" --format json; then exit 0; fi
# It has a key, and the agent that would tell whose is missing, broken or older than the question.
if [ -f "$3/device.key" ]; then echo '{ "unanswered": true }'; fi
