# Enrols the device with the token on standard input. Words: PROGRAM CONFIGURATION STATE [USER]. What was there is kept aside.
enrolment=$3/enrolment.json
[ ! -f "$enrolment" ] || cp -p "$enrolment" "$enrolment.before-deploy" || exit 1
if [ -n "${4:-}" ]; then
    exec runuser -u "$4" -- "$1" enroll --config "$2" -
fi
exec "$1" enroll --config "$2" -
