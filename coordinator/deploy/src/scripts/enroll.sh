# Enrolls the device with the token on standard input. Words: PROGRAM CONFIGURATION STATE [USER]. What was there is kept aside.
# USER owns STATE and may put links into it: everything there is done as that user.
as_owner() { "$@"; }
if [ -n "${4:-}" ]; then
    owner=$4
    as_owner() { runuser -u "$owner" -- "$@"; }
fi
enrollment=$3/enrollment.json
as_owner sh -c '[ ! -f "$1" ] || cp -p "$1" "$1.before-deploy"' sh "$enrollment" </dev/null || exit 1
as_owner "$1" enroll --config "$2" -
