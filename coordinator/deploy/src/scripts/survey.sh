# Describes this machine in `key=value` lines. Arguments: NAME OF THE PACKAGE'S COPY, then the files to hash; without arguments it hashes nothing.
# Changes nothing.
say() { printf '%s=%s\n' "$1" "$2"; }
copy=${1:-}
[ $# -eq 0 ] || shift
say machine "$(uname -m)"
say glibc "$(getconf GNU_LIBC_VERSION 2>/dev/null)"
say hostname "$(uname -n)"
say uid "$(id -u)"
say user "$(id -un)"
say home "$HOME"
say l4t "$(head -n 1 /etc/nv_tegra_release 2>/dev/null)"
say jetpack "$(dpkg-query -W -f '${Version}' nvidia-jetpack 2>/dev/null)"
say board "$(tr -d '\0' </proc/device-tree/model 2>/dev/null)"
[ ! -d /run/systemd/system ] || say systemd yes
if command -v dpkg >/dev/null 2>&1; then
    say dpkg "$(dpkg --print-architecture)"
    say package "$(dpkg-query -W -f '${db:Status-Abbrev} ${Version}' regatta-agent 2>/dev/null)"
fi
if command -v sudo >/dev/null 2>&1; then
    # Asked for the program that is run by it: sudoers may exempt some programs from the password and not others.
    if sudo -n sh -c : regatta 2>/dev/null; then say sudo free; else say sudo asks; fi
fi
# The library that an engine would load, its version by file name or package, and the headers and libraries that a shim is compiled with.
triple=$(uname -m)-linux-gnu
for library in "/usr/lib/$triple"/libnvinfer.so.[0-9]*.[0-9]*.[0-9]*; do
    [ ! -e "$library" ] || say tensorrt "${library##*/libnvinfer.so.}"
done
dpkg-query -W -f '${db:Status-Abbrev}${Version}\n' 'libnvinfer[0-9]*' 2>/dev/null | sed -n 's/^ii */tensorrt=/p'
for headers in "/usr/include/$triple" /usr/include /usr/local/tensorrt/include; do
    if [ -r "$headers/NvInfer.h" ] && [ -r "$headers/NvOnnxParser.h" ]; then
        say tensorrt_headers "$headers"
        break
    fi
done
cache=${XDG_CACHE_HOME:-$HOME/.cache}/regatta
say cache "$cache"
space() { df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }
say free_home_kib "$(space "$HOME")"
say free_usr_kib "$(space /usr)"
say free_state_kib "$(space /var/lib)"
disk=$(df -P /usr 2>/dev/null | awk 'NR == 2 { print $6 }')
# If there are several mounts at one mount point, the last one counts.
case $(awk -v disk="$disk" '$2 == disk { options = $4 } END { print options }' /proc/mounts 2>/dev/null) in
    ro | ro,*) say usr read-only ;;
esac
[ -n "$copy" ] || exit 0
for file in "$cache/$copy" "$@"; do
    case $file in '~/'*) path=$HOME/${file#'~/'} ;; *) path=$file ;; esac
    if [ -r "$path" ] && [ -f "$path" ]; then
        sum=$(sha256sum <"$path")
        say sha256 "${sum%% *} $file"
    fi
done
