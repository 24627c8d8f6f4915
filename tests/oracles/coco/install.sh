#!/bin/sh
# Installs the library of the reference's accuracy script for detections from PyPI, as the yardstick of `regatta accuracy`, and prints
# its Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/coco/install.sh
#
# Does nothing when it is there. Needs Python 3 with pip.
set -eu
oracles=${REGATTA_ORACLES:?set REGATTA_ORACLES to the directory that shall hold the oracles}
pycocotools=2.0.10
dir=$oracles/coco-$pycocotools
if [ ! -f "$dir/ready" ] || [ ! -x "$dir/python" ]; then
    rm -rf "$dir"
    mkdir -p "$dir/lib"
    python3 -m pip install --quiet --target "$dir/lib" "pycocotools==$pycocotools" numpy==2.2.6 >&2
    # A Python that finds them. Debian's has no venv.
    printf '#!/bin/sh\nPYTHONPATH="%s" exec python3 "$@"\n' "$dir/lib" >"$dir/python"
    chmod +x "$dir/python"
    touch "$dir/ready"
fi
echo "$dir/python"
