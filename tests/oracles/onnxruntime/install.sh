#!/bin/sh
# Installs ONNX Runtime from PyPI, as the reference for networks with post-processing, and prints its Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/onnxruntime/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python onnxruntime-1.23.2 "" onnxruntime==1.23.2 "$NUMPY"
