#!/bin/sh
# Installs the library that the reference of YOLO calls, with OpenCV, from PyPI, as the reference for `regatta prep` and for the decoding of
# predictions, and prints their Python. PyTorch is not installed: only functions that run without it are used.
#
# Ultralytics' code is under the AGPL-3.0. It is used for tests only; nothing of it is part of Regatta.
#
#     REGATTA_ORACLES=DIR tests/oracles/ultralytics/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
[ "$(uname -m)" = x86_64 ] || { echo "install.sh: the reference is the wheel of OpenCV for x86-64, this is $(uname -m)" >&2; exit 3; }
make_python ultralytics-8.3.214 "" --no-deps ultralytics==8.3.214 opencv-python-headless==4.12.0.88 "$NUMPY"
