#!/bin/sh
# A fake of Python on Windows. Regatta's programs, which come with -c, see os.name as it is there. The official server does not: it is as on
# Linux.
case $1 in
-c) export PYTHONPATH="${0%/*}/../site" ;;
*) unset PYTHONPATH ;;
esac
exec /usr/bin/python3 "$@"
