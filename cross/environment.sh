# How cargo builds for another machine. Scripts of this directory source it once they have `architecture` (arm64 or amd64), a function `could_not`
# and, unless they build the agent, `program` (sysroot.sh). Sets triple, target, sysroot, library, and cargo's linker and flags for the target.
case $architecture in
    arm64) triple=aarch64-linux-gnu target=aarch64-unknown-linux-gnu package=gcc-aarch64-linux-gnu ;;
    amd64) triple=x86_64-linux-gnu target=x86_64-unknown-linux-gnu package=gcc ;;
    *) echo "${0##*/}: unknown architecture $architecture; known are arm64 and amd64" >&2; exit 2 ;;
esac
compiler=$triple-gcc
command -v "$compiler" >/dev/null || could_not "$compiler is missing; on Debian or Ubuntu: apt-get install $package"
sysroot=$("$here/sysroot.sh" "$architecture" "${program:-agent}")

# Debian's compiler looks into its own C library's directories first, whatever --sysroot says: -B for the start files (a newer
# crt1.o leaves constructors to a libc that glibc 2.31 is not), -L for the libraries.
library=$sysroot/usr/lib/$triple
flags="-C link-arg=--sysroot=$sysroot -C link-arg=-B$library -C link-arg=-L$library -C link-arg=-L$sysroot/lib/$triple"
name=$(printf '%s' "$target" | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${name}_LINKER=$compiler" "CARGO_TARGET_${name}_RUSTFLAGS=$flags" "CC_${target//-/_}=$compiler"
