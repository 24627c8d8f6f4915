#!/usr/bin/env bash
# The agent as it is shipped for boards, with cross-compiled shims, on the real lean runtime of TensorRT 11.4 for arm64, under emulation:
# its version is found, the shim for it is taken, TensorRT is opened and says itself that there is no driver and that it builds nothing.
#
#   check-aarch64.sh [--agent FILE] [HEADERS...]        as of all.sh, for more shims beside those for 11.4 and TensorRT-RTX
#
# FILE is the agent for arm64, which is built where it is not named. Debian: g++-aarch64-linux-gnu qemu-user-static python3-pip.
# NVIDIA's library comes from its PyPI package (67 MB) and is not kept. Exit codes: 0 it holds, 1 it does not, 3 could not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
package=tensorrt-lean-cu13-libs version=11.4.0.106
agent=
if [ "${1:-}" = --agent ]; then
    agent=$(realpath "$2")
    shift 2
fi
for tool in aarch64-linux-gnu-g++ qemu-aarch64-static; do
    command -v "$tool" >/dev/null || { echo "check-aarch64.sh: $tool is missing; see its first lines" >&2; exit 3; }
done
[ -n "$agent" ] || agent=$("$here/../../../cross/build.sh" arm64)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/all.sh" --target aarch64 --sysroot "$("$here/../../../cross/sysroot.sh" arm64)" --out "$work/shims" rtx enterprise "$@"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform manylinux_2_35_aarch64 \
    --dest "$work/wheel" "$package==$version" >&2
python3 -m zipfile -e "$work"/wheel/*.whl "$work/unpacked"

# An engine that says that it is of this version and chip, and is none.
mkdir -p "$work/engine"
cp "$here/../../../datasets/digits/digits.onnx" "$work/digits.onnx"
echo "no plan" >"$work/engine/engine.plan"
cat >"$work/engine/engine.json" <<MANIFEST
{"manifest": {"schema": 1, "onnx_sha256": "00", "tensorrt": "11.4.0", "chip": "aarch64 without a GPU", "precision": "as-in-network",
  "batch": 1, "min_batch": 1, "profiles": 1, "workspace_bytes": 0, "optimization_level": null, "dla": null, "calibration_sha256": null},
 "plan_sha256": "$(sha256sum <"$work/engine/engine.plan" | cut -d' ' -f1)", "plan_bytes": 8, "build_seconds": 0.0, "tensors": [],
 "placement": {"layers": []}}
MANIFEST

# says CODE WORDS COMMAND...: the agent's `engine COMMAND` ends with this code and says these words.
says() {
    local code=$1 words=$2 told found=0
    shift 2
    # This TensorRT needs a newer libc than a board's; the agent takes either.
    told=$(cd "$work" && env -u REGATTA_ENGINES qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib \
        -E REGATTA_PLUGINS="$work/shims" -E REGATTA_TENSORRT="$work/unpacked/tensorrt_lean_libs" "$agent" engine "$@" 2>&1) || found=$?
    printf '# engine %s\n%s\n' "$1" "$told"
    [ "$found" = "$code" ] && grep -qF "$words" <<<"$told" || { echo "check-aarch64.sh: no $code, or not said: $words" >&2; exit 1; }
}
says 3 "this TensorRT has no builder: it is a lean or dispatch runtime" build --onnx digits.onnx
says 1 "TensorRT does not load the plan: createInferRuntime: " inspect "$work/engine"
