# A text file as it is; nothing where there is none. Words: FILE.
[ ! -e "$1" ] || cat "$1"
