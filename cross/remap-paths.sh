# What makes the bytes of a program independent of where it was built: sourced in the repository's root, after `target` is there. Sets remap,
# for RUSTFLAGS, and the same for C, for the crates that compile some.
target_directory=$(realpath -m "${CARGO_TARGET_DIR:-target}")
remap='' c_remap=''
for pair in "$PWD=/regatta" "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$target_directory=/target"; do
    remap="$remap --remap-path-prefix=$pair"
    c_remap="$c_remap -ffile-prefix-map=$pair"
done
export "CFLAGS_${target//-/_}=$c_remap" "CXXFLAGS_${target//-/_}=$c_remap"
