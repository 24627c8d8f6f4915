# Installs the Debian package, as root. Words: FILE. Its output goes to a file first: when the link is lost, dpkg goes on.
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
log=$1.log
tries=0
while :; do
    dpkg -i "$1" >"$log" 2>&1 </dev/null
    code=$?
    # Another one installs, as a new system does in its first minutes.
    grep -q 'frontend lock\|locked by another process' "$log" && [ "$tries" -lt 24 ] || break
    tries=$((tries + 1))
    sleep 5
done
cat "$log" >&2
rm -f "$log"
[ "$code" -ne 0 ] || rm -f "$1"
exit "$code"
