# A whole board, or a workstation, as a machine of its own: Debian with its own kernel, systemd and sshd under qemu-system, headless, its
# console in a file, its network qemu's own, where this machine's loopback is 10.0.2.2. Every instruction is translated: it is slow, and
# no figure from it means anything. Sourced by board-machine.sh and workstation-machine.sh, which set $architecture, $cache and $work.

address=10.0.2.2
# To the coordinator a board behind qemu's network is one elsewhere.
listen=0.0.0.0
processors=2
# More ports of this machine's loopback that lead to the machine, as qemu writes them.
forwards=''
case $architecture in
    arm64) release=debian11 console=ttyAMA0 emulator=(qemu-system-aarch64 -machine virt -cpu cortex-a72) ;;
    amd64) release=debian12 console=ttyS0 emulator=(qemu-system-x86_64 -machine q35 -cpu max) ;;
esac
# Seconds that a boot may take.
patience=900

# ---- The disk that every board begins with: made once, kept in the cache, never written to again.
base=$cache/machine-$release-$architecture
make_base() {
    [ ! -f "$base/ready" ] || return 0
    local root=$base/root kernel
    say "makes the board's disk, once"
    if [ "$release" = debian11 ]; then bootstrap_board; else bootstrap_workstation; fi
    rm -rf "$base"
    mkdir -p "$base"
    cp -a --reflink=auto "$bootstrapped" "$root"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    in_root() { DEBIAN_FRONTEND=noninteractive chroot "$root" "$@" >>"$base/log" 2>&1 || { tail -n 5 "$base/log" >&2; could_not "$1 failed in the board's root"; }; }
    in_root apt-get update -qq
    in_root apt-get install -y -qq --no-install-recommends systemd-timesyncd udev kmod procps
    # The kernel is only unpacked: its package would bring a maker of initial file systems, and run that under emulation.
    kernel=$(chroot "$root" apt-cache depends "linux-image-cloud-$architecture" | sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\).*/\1/p')
    in_root sh -c "cd /root && apt-get download -qq $kernel busybox-static"
    dpkg-deb --fsys-tarfile "$root"/root/linux-image-*.deb | tar -x --keep-directory-symlink -C "$root"
    dpkg-deb -x "$root"/root/busybox-static_*.deb "$base/busybox"
    in_root depmod "${kernel#linux-image-}"
    initial_files "$root" "${kernel#linux-image-}"
    cp "$root"/boot/vmlinuz-* "$base/kernel"
    printf '[Match]\nName=e*\n[Network]\nDHCP=ipv4\n' >"$root/etc/systemd/network/machine.network"
    in_root systemctl --quiet enable systemd-networkd systemd-timesyncd
    mkdir -p "$root/etc/systemd/timesyncd.conf.d"
    printf '[Time]\nNTP=%s\nRootDistanceMaxSec=30\n' "$address" >"$root/etc/systemd/timesyncd.conf.d/machine.conf"
    echo board >"$root/etc/hostname"
    echo '127.0.0.1 localhost' >"$root/etc/hosts"
    echo 'UseDNS no' >>"$root/etc/ssh/sshd_config"
    # How this script looks into the board; what is put to the test comes by the user's own login.
    ssh-keygen -q -t ed25519 -N '' -C board-machine -f "$base/key"
    install -D -m 0600 "$base/key.pub" "$root/root/.ssh/authorized_keys"
    chmod 0700 "$root/root/.ssh"
    rm -rf "$root"/root/*.deb "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root/var/lib/dbus/machine-id" "$base/busybox"
    : >"$root/etc/machine-id"
    disk_of "$root" "$base/disk"
    touch "$base/ready"
}
# What the kernel needs to find its disk: a few modules, and a program that loads them.
initial_files() { # ROOT KERNEL
    local files=$base/initial module
    mkdir -p "$files/modules" "$files/bin" "$files/proc" "$files/sys" "$files/dev" "$files/root"
    cp "$base/busybox/bin/busybox" "$files/bin/"
    for module in virtio_pci virtio_blk ext4 crc32c_generic; do
        chroot "$1" modprobe --set-version "$2" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
    done | awk '!seen[$0]++' | while read -r module; do
        cp "$1$module" "$files/modules/"
        echo "${module##*/}"
    done >"$files/order"
    cat >"$files/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
while read -r module; do /bin/busybox insmod "/modules/$module"; done </order
until [ -b /dev/vda ]; do /bin/busybox sleep 0.1; done
/bin/busybox mount -t ext4 /dev/vda /root
/bin/busybox umount /proc /sys
/bin/busybox mount -o move /dev /root/dev
exec /bin/busybox switch_root /root /sbin/init
INIT
    chmod +x "$files/init"
    (cd "$files" && find . | cpio --quiet -o -H newc | gzip) >"$base/initrd"
}
disk_of() { # ROOT FILE: an ext4 of 3 GB with what lies there, in the words of Debian 11's kernel
    truncate -s 3G "$2"
    PATH=$PATH:/sbin mke2fs -q -t ext4 -O ^orphan_file,^metadata_csum_seed -d "$1" "$2"
}

# ---- A board.
new_board() { # NAME [BASE]: a disk of its own, and a port on which its sshd is reached
    boat=$1 disk=$work/$1.disk ssh_port=$(free_port)
    cp --reflink=auto --sparse=always "${2:-$base/disk}" "$disk"
}
machine=''
power_on() { # [MORE OPTIONS OF QEMU]: until systemd says that the system is up
    plug_in "$@"
    is_up && return 0
    cat "$work/qemu.log" >&2
    tail -n 30 "$work/$boat.console" >&2
    failed "$boat did not boot within $patience s"
}
plug_in() { # [MORE OPTIONS OF QEMU]
    # Without -snapshot or cache=unsafe: what the board flushes is on the disk's file, what it has not flushed dies with it.
    "${emulator[@]}" -accel tcg,thread=multi -smp "$processors" -m 1024 -nodefaults -no-user-config -display none -no-reboot \
        -kernel "$base/kernel" -initrd "$base/initrd" \
        -append "root=/dev/vda rw console=$console net.ifnames=0 systemd.hostname=$boat panic=-1" \
        -serial "file:$work/$boat.console" -monitor none \
        -drive "file=$disk,if=virtio,format=raw,cache=writeback" \
        -netdev "user,id=link,hostfwd=tcp:127.0.0.1:$ssh_port-:22$forwards" -device virtio-net-pci,netdev=link,romfile= \
        -device virtio-rng-pci "$@" </dev/null >"$work/qemu.log" 2>&1 &
    machine=$!
}
is_up() { # Sets booted: seconds until multi-user.target is there
    local begin=$SECONDS
    until on_board systemctl is-active --quiet multi-user.target 2>/dev/null; do
        kill -0 "$machine" 2>/dev/null && [ $((SECONDS - begin)) -le "$patience" ] || return 1
        sleep 1
    done
    booted=$((SECONDS - begin))
}
# As when the plug is pulled: what the board's kernel holds in memory and has not flushed is lost.
power_cut() {
    [ -n "$machine" ] || return 0
    kill -KILL "$machine" 2>/dev/null || true
    wait "$machine" 2>/dev/null || true
    machine=''
    ssh -q -F none -o "ControlPath=$work/master" -O exit board 2>/dev/null || true
    rm -f "$work/master"
}
# By one connection that is kept: under translation each login takes a second.
on_board() {
    ssh -q -F none -i "$base/key" -p "$ssh_port" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -o ConnectTimeout=10 \
        -o ServerAliveInterval=5 -o ControlMaster=auto -o "ControlPath=$work/master" -o ControlPersist=yes root@127.0.0.1 \
        "DEBIAN_FRONTEND=noninteractive $(printf '%q ' "$@")"
}
