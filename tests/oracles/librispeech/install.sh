#!/bin/sh
# Installs the libraries of the reference's reading and scoring of LibriSpeech from PyPI, as the reference for `regatta prep rnnt` and
# `regatta accuracy rnnt`, and prints their Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/librispeech/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python librispeech-2 "-W ignore" numpy==1.26.4 soundfile==0.12.1 unidecode==1.3.8 inflect==7.0.0 onnx==1.17.0 onnxruntime==1.23.2
