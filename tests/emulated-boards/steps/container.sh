# A whole board as a container: Debian with its own systemd under systemd-nspawn, on this machine's kernel, for arm64 under qemu-user. Its
# network is this machine's, unless boot gets another one. Sourced by board-root.sh and board-cloud.sh after lab.sh.

address=127.0.0.1
listen=127.0.0.1

new_board() { # NAME: a system of its own, out of $bootstrapped
    boat=$1 root=$work/$1
    cp -a --reflink=auto "$bootstrapped" "$root"
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    echo "$boat" >"$root/etc/hostname"
    printf '127.0.0.1 localhost %s\n' "$boat" >"$root/etc/hosts"
}
own_sshd() { # on a port of its own, which boards that share this machine's network need
    ssh_port=$(free_port)
    printf 'Port %s\nListenAddress 127.0.0.1\nUseDNS no\n' "$ssh_port" >>"$root/etc/ssh/sshd_config"
}
sshd_answers() {
    local tries
    for tries in $(seq 60); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$ssh_port") 2>/dev/null; then return 0; fi
        sleep 1
    done
    failed "$boat's sshd does not answer"
}

nspawn='' leader=''
plug_in() { # [MORE OPTIONS OF SYSTEMD-NSPAWN]
    systemd-nspawn --quiet --register=no --keep-unit --directory="$root" --machine="$boat" --boot "$@" >"$work/console.log" 2>&1 </dev/null &
    nspawn=$!
    leader=''
}
is_up() { # until systemd says that the system is up
    local pid tries
    for tries in $(seq 300); do
        for pid in $(pgrep -P "$nspawn" || true); do
            if grep -q '^NSpid:.*[[:space:]]1$' "/proc/$pid/status" 2>/dev/null; then leader=$pid; fi
        done
        if [ -n "$leader" ] && on_board systemctl is-active --quiet multi-user.target 2>/dev/null; then return 0; fi
        sleep 1
    done
    tail -n 20 "$work/console.log" >&2
    failed "systemd did not boot in the root within $tries s"
}
power_on() {
    plug_in "$@"
    is_up
}
power_cut() { # An orderly shutdown does not end under emulation. What it has written stays: the kernel is this machine's.
    [ -z "$leader" ] || kill -KILL "$leader" 2>/dev/null || true
    if [ -n "$nspawn" ]; then
        sleep 1
        kill -KILL "$nspawn" 2>/dev/null || true
        wait "$nspawn" 2>/dev/null || true
    fi
    nspawn='' leader=''
}
on_board() {
    nsenter --target "$leader" --mount --uts --ipc --net --pid --root --wd -- \
        /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}

# Debian's handler runs every program with its caller's rights: for sudo on the board, one beside it that honours set-user-ID,
# until forget_set_user_id.
handler=''
honour_set_user_id() {
    [ "$architecture" = arm64 ] || return 0
    local magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    handler=/proc/sys/fs/binfmt_misc/regatta-aarch64-$$
    printf '%s' ":${handler##*/}:M::$magic:$mask:$(sed -n 's/^interpreter //p' /proc/sys/fs/binfmt_misc/qemu-aarch64):OCPF" >/proc/sys/fs/binfmt_misc/register
}
forget_set_user_id() { [ -z "$handler" ] || echo -1 >"$handler" || true; }
