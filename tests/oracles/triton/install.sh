#!/bin/sh
# Installs Triton's server with its python backend from PyPI, and ONNX Runtime for that backend, and prints their Python. The package has no other
# backend.
#
#     REGATTA_ORACLES=DIR tests/oracles/triton/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
# Their own requirements are for uses as a Python library. The backend reads arrays of NumPy 1.
make_python triton-2.51.0 "" --no-deps nvidia-pytriton==0.7.0 onnxruntime==1.23.2 numpy==1.26.4
