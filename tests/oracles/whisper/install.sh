#!/bin/sh
# Installs the text normaliser that the reference of Whisper calls from PyPI, as the reference for `regatta accuracy whisper`, and prints its
# Python. PyTorch is not installed: only functions that run without it are used.
#
#     REGATTA_ORACLES=DIR tests/oracles/whisper/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python whisper-20250625 "" --no-deps openai-whisper==20250625 regex==2025.9.18 more-itertools==10.8.0
