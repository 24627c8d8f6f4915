#!/usr/bin/env bash
# Refuses what would not start on JetPack 5: a symbol version newer than glibc 2.31, any need of libstdc++, and any library
# that is not glibc's or gcc's own.
#
#   check-symbols.sh FILE...
#
# Exit codes: 0 all start there, 1 at least one does not, 2 wrong use, 3 could not.
set -euo pipefail
newest=2.31
[ $# -gt 0 ] || { echo "check-symbols.sh: name the binaries to check" >&2; exit 2; }
command -v readelf >/dev/null || { echo "check-symbols.sh: readelf is missing; on Debian or Ubuntu: apt-get install binutils" >&2; exit 3; }

bad=0
complain() {
    printf 'check-symbols.sh: %s\n' "$*" >&2
    bad=1
}
for file in "$@"; do
    if ! readelf -h "$file" >/dev/null 2>&1; then
        complain "$file is no ELF file"
        continue
    fi
    needed=$(readelf -V -W "$file" | sed -n '/\.gnu\.version_r/,$p' | grep -oE 'Name: (GLIBC|GLIBCXX|CXXABI|GCC)_[0-9A-Za-z.]+' | cut -d' ' -f2 | sort -Vu || true)
    libraries=$(readelf -d -W "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    for version in $needed; do
        case $version in
            GLIBC_PRIVATE | GLIBCXX_* | CXXABI_*) complain "$file needs $version" ;;
            GLIBC_*)
                [ "$(printf '%s\n' "$newest" "${version#GLIBC_}" | sort -V | tail -n 1)" = "$newest" ] ||
                    complain "$file needs $version, JetPack 5 has $newest"
                ;;
        esac
    done
    for library in $libraries; do
        case $library in
            libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | libgcc_s.so.1 | ld-linux-*) ;;
            *) complain "$file needs $library" ;;
        esac
    done
    printf '%s: newest is %s; %s\n' "$file" "$(printf '%s\n' "$needed" | grep '^GLIBC_[0-9]' | tail -n 1)" "$(echo $libraries)"
done
exit $bad
