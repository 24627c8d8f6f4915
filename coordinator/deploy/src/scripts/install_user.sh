# Installs the archive for this user. Words: FILE. Its output goes to a file first: when the link is lost, the rest is done.
log=$1.log
work=$1.unpacked
rm -rf "$work"
(mkdir "$work" && tar -xzf "$1" -C "$work" && exec "$work"/*/install.sh) >"$log" 2>&1 </dev/null
code=$?
cat "$log" >&2
rm -rf "$log" "$work"
[ "$code" -ne 0 ] || rm -f "$1"
exit "$code"
