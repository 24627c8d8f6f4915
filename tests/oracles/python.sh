# Sourced by the install.sh of each oracle that is a Python library.
#
#     make_python NAME-VERSION "OPTIONS OF PYTHON" ARGUMENTS OF PIP...
#
# installs what pip's arguments name from PyPI, beside the other oracles, and prints a Python that finds it: Debian's has no venv. It
# does nothing when that is there. Needs Python 3 with pip.

# The reference's bytes were compared with this version.
NUMPY=numpy==2.2.6

make_python() {
    dir=${REGATTA_ORACLES:?set REGATTA_ORACLES to the directory that shall hold the oracles}/$1 options=$2
    shift 2
    if [ ! -f "$dir/ready" ] || [ ! -x "$dir/python" ]; then
        rm -rf "$dir"
        mkdir -p "$dir/lib"
        python3 -m pip install --quiet --target "$dir/lib" "$@" >&2
        printf '#!/bin/sh\nPYTHONPATH="%s${PYTHONPATH:+:$PYTHONPATH}" exec python3 %s "$@"\n' "$dir/lib" "$options" >"$dir/python"
        chmod +x "$dir/python"
        touch "$dir/ready"
    fi
    echo "$dir/python"
}
