# Prints a text file unchanged, or nothing without the file. Words: FILE.
[ ! -e "$1" ] || cat "$1"
