#!/bin/sh
# Installs the libraries of the reference's preprocessing and accuracy of KiTS19 from PyPI, as the reference for `regatta prep 3d-unet` and
# `regatta accuracy 3d-unet`, with ONNX Runtime, and prints their Python. The reference calls functions that newer versions of SciPy and pandas lack.
#
#     REGATTA_ORACLES=DIR tests/oracles/kits19/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
[ "$(uname -m)" = x86_64 ] || { echo "install.sh: the reference is the wheel of SciPy for x86-64, this is $(uname -m)" >&2; exit 3; }
make_python kits19-1 "-W ignore" scipy==1.10.1 nibabel==5.2.1 pandas==1.5.3 numpy==1.26.4 onnxruntime==1.23.2
