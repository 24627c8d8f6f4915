# What was kept for going back is not needed any more. Words: CONFIGURATION STATE.
rm -f "$1.before-deploy" "$2/enrolment.json.before-deploy"
