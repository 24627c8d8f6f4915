#!/bin/sh
# Installs the library of the reference's accuracy script for detections from PyPI, as the reference for `regatta accuracy`, and prints
# its Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/coco/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python coco-2.0.10 "" pycocotools==2.0.10 "$NUMPY"
