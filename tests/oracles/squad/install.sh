#!/bin/sh
# Installs the tokenizer of the reference's preprocessing of SQuAD from PyPI, as the yardstick of `regatta prep`, and prints its Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/squad/install.sh
#
# Does nothing when it is there. Needs Python 3 with pip.
set -eu
oracles=${REGATTA_ORACLES:?set REGATTA_ORACLES to the directory that shall hold the oracles}
transformers=4.57.3
dir=$oracles/squad-$transformers
if [ ! -f "$dir/ready" ] || [ ! -x "$dir/python" ]; then
    rm -rf "$dir"
    mkdir -p "$dir/lib"
    # accuracy-squad.py needs pkg_resources, which newer versions of setuptools lack, and six.
    python3 -m pip install --quiet --target "$dir/lib" "transformers==$transformers" numpy==2.2.6 "setuptools<81" six >&2
    # A Python that finds them. Debian's has no venv.
    printf '#!/bin/sh\nPYTHONPATH="%s${PYTHONPATH:+:$PYTHONPATH}" exec python3 -W ignore "$@"\n' "$dir/lib" >"$dir/python"
    chmod +x "$dir/python"
    touch "$dir/ready"
fi
echo "$dir/python"
