# Compiles the fakes of CUDA's driver and of TensorRT in advance, for machines without a compiler. Sourced by the scripts that pack them. Tests and
# the GPU kit find the fakes in REGATTA_FAKES, by the name of the source and the macros (crates/test-support/src/fake_tensorrt.rs).
#
# compile_fakes SOURCE DIRECTORY COMPILER...: SOURCE is a checkout; COMPILER may include options, such as --sysroot.
compile_fakes() {
    local source=$1 directory=$2 macro
    shift 2
    local compiler=("$@")
    # fake NAME MACRO [OPTION]
    fake() {
        "${compiler[@]}" -O2 -ffp-contract=off -shared -fPIC -pthread -I "$source/crates/tensorrt/shim" -o "$directory/$1$2.so" \
            ${2:+"$2"} ${3:+"$3"} "$source/crates/test-support/fakes/$1.c" -lm || could_not "the fake $1 cannot be compiled"
    }
    rm -rf "$directory"
    mkdir -p "$directory"
    fake version ""
    fake trt_plugin ""
    for macro in "" -DFAKE_WITHOUT_GRAPHS; do fake cuda_driver "$macro" -Wl,-soname,libcuda.so.1; done
    for macro in "" -DFAKE_ABI=99; do fake trt_shim "$macro"; done
}
