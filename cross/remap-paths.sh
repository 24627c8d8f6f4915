# Makes the bytes of a program independent of the directory in which it is built. Source it in the repository's root once `target` is set. Sets remap,
# for RUSTFLAGS, and exports the corresponding flags for crates that compile C.
target_directory=$(realpath -m "${CARGO_TARGET_DIR:-target}")
remap='' c_remap=''
for pair in "$PWD=/regatta" "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$target_directory=/target"; do
    remap="$remap --remap-path-prefix=$pair"
    c_remap="$c_remap -ffile-prefix-map=$pair"
done
export "CFLAGS_${target//-/_}=$c_remap" "CXXFLAGS_${target//-/_}=$c_remap"
