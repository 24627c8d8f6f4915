#!/bin/sh
# Installs llama.cpp's server from PyPI, as the real model server of the tests, and prints its Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/llama-cpp/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python llama-cpp-11549 "" xllamacpp==2026.10.11549 gguf==0.19.0 "$NUMPY"
