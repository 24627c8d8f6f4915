# Takes a file from standard input. Words: DIRECTORY NAME SHA256. The name appears when the whole file is there, and right.
umask 077
part=$1/.$2.part
refuse() {
    rm -f "$part"
# Read to the end: the sender waits until everything is read.
    cat >/dev/null
    exit 1
}
mkdir -p "$1" || refuse
cat >"$part" || refuse
sum=$(sha256sum <"$part")
if [ "${sum%% *}" != "$3" ]; then
    echo "what arrived is not what was sent" >&2
    refuse
fi
mv -f "$part" "$1/$2" || refuse
