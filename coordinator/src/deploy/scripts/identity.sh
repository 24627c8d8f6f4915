# Who the device is, as JSON; nothing where no agent is installed yet. Words: PROGRAM CONFIGURATION STATE.
if [ -x "$1" ] && [ -f "$2" ] && "$1" identity --config "$2" --format json; then exit 0; fi
# It has a key, and the agent that would tell whose is missing, broken or older than the question.
if [ -f "$3/device.key" ]; then echo '{ "unanswered": true }'; fi
