#!/bin/sh
# Installs the library of ONNX from PyPI, which has the tests of each operator, and prints its Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/onnx/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
# Those of the tools that export networks, which the tests run with this Python.
requirements=$(dirname "$0")/../../../tools/export-requirements.txt
make_python "onnx-$(sed -n 's/^onnx==//p' "$requirements")" "-W ignore" --requirement "$requirements"
