#!/bin/sh
# Installs the tokenizer that the reference of Stable Diffusion XL calls from PyPI, and CLIP's list of merges, as the reference for `regatta prep
# stable-diffusion-xl`, and prints their Python. PyTorch is not installed: the tokenizer runs without it.
#
#     REGATTA_ORACLES=DIR tests/oracles/clip/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python clip-4.45.2 "-W ignore" --no-deps transformers==4.45.2 tokenizers==0.20.3 huggingface-hub==0.25.2 safetensors==0.4.5 "$NUMPY" \
    open-clip-torch==2.26.1 ftfy==6.3.1 wcwidth==0.2.13 regex==2025.9.18 filelock==3.19.1 fsspec==2024.9.0 packaging==25.0 pyyaml==6.0.2 \
    requests==2.32.5 certifi==2025.8.3 charset-normalizer==3.4.3 idna==3.10 urllib3==2.5.0 tqdm==4.67.1 typing-extensions==4.15.0
