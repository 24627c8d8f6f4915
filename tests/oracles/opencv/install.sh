#!/bin/sh
# Installs the libraries of the reference's preprocessing from PyPI, as the yardstick of `regatta prep`, and prints their Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/opencv/install.sh
#
# The wheel of OpenCV for x86-64 is the reference: its wheels for other processors compute other bytes. scikit-image comes without
# its dependencies, for its photographs. Does nothing when they are there. Needs Python 3 with pip.
set -eu
oracles=${REGATTA_ORACLES:?set REGATTA_ORACLES to the directory that shall hold the oracles}
opencv=4.12.0.88
dir=$oracles/opencv-$opencv
if [ ! -f "$dir/ready" ] || [ ! -x "$dir/python" ]; then
    [ "$(uname -m)" = x86_64 ] || { echo "install.sh: the reference is the wheel for x86-64, this is $(uname -m)" >&2; exit 3; }
    rm -rf "$dir"
    mkdir -p "$dir/lib"
    {
        python3 -m pip install --quiet --target "$dir/lib" "opencv-python-headless==$opencv" numpy==2.2.6 pillow==12.0.0
        python3 -m pip install --quiet --no-deps --target "$dir/lib" scikit-image==0.26.0
    } >&2
    # A Python that finds them. Debian's has no venv.
    printf '#!/bin/sh\nPYTHONPATH="%s" exec python3 "$@"\n' "$dir/lib" >"$dir/python"
    chmod +x "$dir/python"
    touch "$dir/ready"
fi
echo "$dir/python"
