#!/usr/bin/env bash
# The main path of docs/resnet50-on-orin.md with an emulated board: a Debian 11 for arm64 with systemd, to which the commands of the page deploy the
# real package over the board's own sshd and sudo. The test in tests/tests/resnet50_on_orin executes them. The board has the device tree of an AGX Orin
# and the fakes of CUDA's driver and of TensorRT.
#
#   board-submission.sh [--agent FILE]
#
# Needs root, debootstrap, qemu-user-static, binfmt-support, systemd-container, openssh-client and g++-aarch64-linux-gnu. FILE is the agent for arm64;
# without it, it is built. Keeps the bootstrapped system in ${XDG_CACHE_HOME:-~/.cache}/regatta. Exit codes: 0 all held, 1 something did not, 2 wrong
# use, 3 could not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
for file in lab container deployment; do . "$here/steps/$file.sh"; done
architecture=arm64
take_options "$@"
needs "debootstrap qemu-user-static binfmt-support systemd-container openssh-client g++-aarch64-linux-gnu" \
    debootstrap qemu-aarch64-static update-binfmts systemd-nspawn nsenter ssh-keygen aarch64-linux-gnu-g++

work=$(mktemp -d)
clean_up() {
    power_cut
    forget_set_user_id
    rm -rf "$work"
}
trap clean_up EXIT

# The test runs the coordinator that is built beside it.
(cd "$repository" && cargo build --workspace --bins --locked --quiet && cargo test --workspace --locked --quiet --no-run --test resnet50_on_orin)
regatta=${CARGO_TARGET_DIR:-$repository/target}/debug/regatta
ready_to_test
bootstrap_board
honour_set_user_id

say "fakes of CUDA's driver and of TensorRT 8.5.2, and the official LoadGen, for arm64"
sysroot=$("$repository/cross/sysroot.sh" arm64)
library=$sysroot/usr/lib/aarch64-linux-gnu
. "$repository/cross/fakes.sh"
compile_fakes "$repository" "$work/fakes" aarch64-linux-gnu-gcc --sysroot="$sysroot" -B"$library" -L"$library"
mkdir -p "$work/shims"
cp "$work/fakes/trt_shim.so" "$work/shims/libregatta_trt-8.5.2.so"
"$repository/crates/loadgen-official/bridge/build.sh" --pypi 6.0.17 --out "$work/plugins" --target aarch64 --sysroot "$sysroot" >&2
"$repository/packaging/package.sh" --binary "$agent" --arch arm64 --shims "$work/shims" --plugins "$work/plugins" --level 1 --out "$work/packages" >/dev/null

say "a Debian 11 for arm64 boots, with the device tree of an AGX Orin, and a login that may use sudo ($(date -u +%FT%TZ))"
new_board boat-arm64
own_sshd
cp "$work/fakes/cuda_driver.so" "$root/usr/lib/aarch64-linux-gnu/libcuda.so.1"
cp "$work/fakes/version.so" "$root/usr/lib/aarch64-linux-gnu/libnvinfer.so.8.5.2"
ln -s libnvinfer.so.8.5.2 "$root/usr/lib/aarch64-linux-gnu/libnvinfer.so.8"
mkdir -p "$root/etc/systemd/system/regatta-agent.service.d"
printf '[Service]\nEnvironment=FAKE_TRT_COMPUTES=1\n' >"$root/etc/systemd/system/regatta-agent.service.d/fakes.conf"
tree=$work/firmware/devicetree/base
mkdir -p "$tree/host1x@13e00000/nvdla0@15880000" "$tree/host1x@13e00000/nvdla1@158c0000"
printf 'NVIDIA Orin Jetson-Small Developer Kit\0' >"$tree/model"
printf 'nvidia,p3737-0000+p3701-0005\0nvidia,tegra23x\0nvidia,tegra234\0' >"$tree/compatible"
for dla in "$tree"/host1x@13e00000/*; do printf 'okay\0' >"$dla/status"; done
power_on --bind-ro="$work/firmware:/sys/firmware"
shown cat /sys/firmware/devicetree/base/model
make_login "$login" "$password"
sshd_answers

say "the commands of the page"
export REGATTA_BOARD_LOGIN=$login@127.0.0.1:$ssh_port REGATTA_BOARD_PASSWORD=$password REGATTA_BOARD_FINGERPRINT=$fingerprint REGATTA_BOARD_PACKAGES=$work/packages
(cd "$repository" && cargo test --workspace --locked --quiet --test resnet50_on_orin -- --nocapture --exact the_commands_of_the_page_lead_to_a_submission) || failed "the commands do not lead to a submission"
printf '\nboard-submission: all held (%s)\n' "$(date -u +%FT%TZ)"
