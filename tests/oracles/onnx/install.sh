#!/bin/sh
# Installs the library of ONNX from PyPI, which has the tests of each operator, and prints its Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/onnx/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python onnx-1.23.2 "-W ignore" onnx==1.23.2 "$NUMPY"
