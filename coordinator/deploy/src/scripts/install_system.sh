# Installs the Debian package, as root. Words: FILE SHA256. FILE lies in a directory of the login's: what is installed is a copy that
# nobody else can write to. Its output goes to a file first: when the link is lost, dpkg goes on.
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
work=$(mktemp -d /var/tmp/regatta-deploy.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
cp "$1" "$work/regatta-agent.deb" || exit 1
sum=$(sha256sum <"$work/regatta-agent.deb")
if [ "${sum%% *}" != "$2" ]; then
    echo "the copied package is not what was sent" >&2
    exit 1
fi
tries=0
while :; do
    dpkg -i "$work/regatta-agent.deb" >"$work/log" 2>&1 </dev/null
    code=$?
    # Another one installs, as a new system does in its first minutes.
    grep -q 'frontend lock\|locked by another process' "$work/log" && [ "$tries" -lt 24 ] || break
    tries=$((tries + 1))
    sleep 5
done
cat "$work/log" >&2
[ "$code" -ne 0 ] || rm -f "$1"
exit "$code"
