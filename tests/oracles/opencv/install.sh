#!/bin/sh
# Installs the libraries of the reference's preprocessing from PyPI, as the reference for `regatta prep`, and prints their Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/opencv/install.sh
#
# The wheel of OpenCV for x86-64 is the reference: its wheels for other processors compute other bytes. scikit-image comes without
# its dependencies, for its photographs; the others need nothing but NumPy.
set -eu
. "$(dirname "$0")/../python.sh"
[ "$(uname -m)" = x86_64 ] || { echo "install.sh: the reference is the wheel for x86-64, this is $(uname -m)" >&2; exit 3; }
make_python opencv-4.12.0.88 "" --no-deps opencv-python-headless==4.12.0.88 "$NUMPY" pillow==12.0.0 scikit-image==0.26.0
