#!/bin/sh
# Installs Apache Otava's change points from PyPI, as the reference for `regatta history`, and prints its Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/otava/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
# Its clients of databases are left out.
make_python otava-0.8.0 "" --no-deps apache-otava==0.8.0 scipy==1.15.3 "$NUMPY"
