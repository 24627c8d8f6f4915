#!/bin/sh
# Installs ONNX Runtime from PyPI, as the yardstick of networks with post-processing, and prints its Python.
#
#     REGATTA_ORACLES=DIR tests/oracles/onnxruntime/install.sh
#
# Does nothing when it is there. Needs Python 3 with pip.
set -eu
oracles=${REGATTA_ORACLES:?set REGATTA_ORACLES to the directory that shall hold the oracles}
onnxruntime=1.23.2
dir=$oracles/onnxruntime-$onnxruntime
if [ ! -f "$dir/ready" ] || [ ! -x "$dir/python" ]; then
    rm -rf "$dir"
    mkdir -p "$dir/lib"
    python3 -m pip install --quiet --target "$dir/lib" "onnxruntime==$onnxruntime" numpy==2.2.6 >&2
    # A Python that finds them. Debian's has no venv.
    printf '#!/bin/sh\nPYTHONPATH="%s" exec python3 "$@"\n' "$dir/lib" >"$dir/python"
    chmod +x "$dir/python"
    touch "$dir/ready"
fi
echo "$dir/python"
