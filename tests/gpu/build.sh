#!/usr/bin/env bash
# Builds the GPU kit: one archive for a machine with an NVIDIA GPU, which only needs a shell, tar and the driver.
#
#   build.sh [amd64|arm64] [--out FILE] [--headers DIR]... [--without-speech] [--programs DIR [--shims DIR]]
#
# The defaults are amd64 and regatta-gpu-kit-ARCH.tar.gz in the current directory. --headers names the headers of the machine's TensorRT, in the forms
# that crates/tensorrt/shim/all.sh accepts; shims for TensorRT-RTX 1.7 and TensorRT 11.4 are always built. --programs takes gpu-kit and regatta-agent
# from a directory, such as target/debug, instead of building them for glibc 2.31. The shims are then those of --shims, if it is used.
# On the machine:
#
#   tar -xzf regatta-gpu-kit-amd64.tar.gz && regatta-gpu-kit/run [--tensorrt DIR]
#
# The small speech networks need Python and PyPI (tests/oracles/librispeech/install.sh); --without-speech omits them.
# Exit codes: 0 built, 2 wrong usage, 3 failure.
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
could_not() { echo "build.sh: $1" >&2; exit 3; }
wrong() { echo "build.sh: $1" >&2; exit 2; }
architecture=amd64 out='' headers=() speech=yes programs='' shims=''
while [ $# -gt 0 ]; do
    case $1 in
        arm64 | amd64) architecture=$1 ;;
        --without-speech) speech=no ;;
        --out | --headers | --programs | --shims)
            [ -n "${2:-}" ] || wrong "$1 needs a value"
            case $1 in
                --out) out=$2 ;;
                --headers) headers+=("$(realpath "$2")") ;;
                --programs) programs=$(realpath "$2") ;;
                --shims) shims=$(realpath "$2") ;;
            esac
            shift ;;
        *) wrong "unknown argument $1" ;;
    esac
    shift
done
[ -z "$shims" ] || [ -n "$programs" ] || wrong "--shims needs --programs"
out=$(realpath -m "${out:-regatta-gpu-kit-$architecture.tar.gz}")
here=$repository/cross
. "$here/fakes.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kit=$work/regatta-gpu-kit
mkdir -p "$kit/bin" "$kit/shims"
cp "$repository/tests/gpu/run" "$kit/run"

if [ -n "$programs" ]; then
    strip=strip fakes=(cc)
    [ -z "$shims" ] || cp "$shims"/libregatta_trt-*.so "$kit/shims/" || could_not "$shims has no shims"
else
    . "$here/environment.sh"
    strip=$triple-strip fakes=("$compiler" --sysroot="$sysroot" -B"$library" -L"$library")
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$repository/target}
    # The quickstart's profile builds quickly, and optimises the code that affects the time of a query.
    (cd "$repository" && cargo build --profile quickstart --locked --target "$target" --package regatta-gpu-kit --package regatta-agent \
        --bin gpu-kit --bin regatta-agent) ||
        could_not "cargo could not build the programs for $target; if the target is missing, run: rustup target add $target"
    programs=$CARGO_TARGET_DIR/$target/quickstart
    options=()
    [ "$architecture" = amd64 ] || options=(--target aarch64)
    "$repository/crates/tensorrt/shim/all.sh" --out "$kit/shims" --sysroot "$sysroot" "${options[@]}" rtx enterprise "${headers[@]}" >&2
fi
for program in gpu-kit regatta-agent; do
    "$strip" -o "$kit/bin/$program" "$programs/$program" || could_not "$programs has no $program"
done
compile_fakes "$repository" "$kit/fakes" "${fakes[@]}"

# Networks with the topology of RNN-T and Whisper and random weights, and waveforms from the tests.
speech_networks() {
    local python oracles=$repository/tests/oracles configs=$repository/configs/benchmarks of count
    python=$("$oracles/librispeech/install.sh") || could_not "the libraries for the speech networks cannot be installed; --without-speech omits them"
    for of in rnnt whisper; do mkdir -p "$kit/speech/$of/samples" "$kit/speech/$of/models/$of"; done
    "$python" "$oracles/librispeech/rnnt.py" waveforms "$kit/speech/rnnt/samples"
    "$python" "$oracles/librispeech/rnnt.py" weights "$work/weights.npz" 32
    "$python" "$repository/tools/export-rnnt" "$work/weights.npz" "$kit/speech/rnnt/models/rnnt"
    "$python" "$oracles/whisper/speech.py" waveforms "$kit/speech/whisper/samples"
    "$python" "$oracles/whisper/speech.py" checkpoint "$work/checkpoint"
    # The prompt's four tokens and 23 more.
    "$python" "$repository/tools/export-whisper" --positions 27 "$work/checkpoint" "$kit/speech/whisper/models/whisper"
    for of in rnnt whisper; do
        count=$("$python" -c 'import numpy, sys; print(len(numpy.load(sys.argv[1])))' "$kit/speech/$of/samples/length.npy")
        seq -f 'sample%g' 0 $((count - 1)) >"$kit/speech/$of/map.txt"
        sed -E -e "s/^((total|performance)_samples) = .*/\1 = $count/" -e 's|^dir = .*|dir = "samples"\nmap = "map.txt"|' \
            -e 's/shape = \[1024\]/shape = [32]/' -e 's/shape = \[320\]/shape = [24]/' \
            -e 's/^layers = .*/layers = 2/' -e 's/^width = .*/width = 32/' -e 's/^vocabulary = .*/vocabulary = 66/' \
            -e 's/^prompt = .*/prompt = [60, 61, 62, 63]/' -e 's/^end = .*/end = 59/' -e 's/^most_tokens = .*/most_tokens = 24/' \
            "$configs/$of.toml" >"$kit/speech/$of/benchmark.toml"
    done
}
[ "$speech" = no ] || speech_networks >&2

mkdir -p "$(dirname "$out")"
tar -C "$work" -czf "$out" regatta-gpu-kit
echo "build.sh: $(du -h "$out" | cut -f1)" >&2
printf '%s\n' "$out"
