#!/bin/sh
# Installs the tokenizer of the reference's preprocessing of SQuAD from PyPI, as the reference for `regatta prep`, and prints its Python.
# accuracy-squad.py needs pkg_resources, which newer versions of setuptools lack, and six.
#
#     REGATTA_ORACLES=DIR tests/oracles/squad/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python squad-4.57.3 "-W ignore" transformers==4.57.3 "$NUMPY" "setuptools<81" six
