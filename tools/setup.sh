# Sourced by ./quickstart, ./test and .ci/run: brings what a command needs onto this machine, or says what it leaves out.
# It installs Debian packages (as root or with sudo) and cargo tools, unless REGATTA_NO_INSTALL is set; it never touches a system's
# configuration.

say() { printf '%s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo "$@"; else return 1; fi
}

# need_debian COMMAND PACKAGE...: makes COMMAND available. Fails, having said why, when it cannot.
need_debian() {
    _command=$1
    shift
    # Daemons live in sbin, which a user's PATH may lack.
    if PATH=$PATH:/usr/sbin:/sbin command -v "$_command" >/dev/null 2>&1; then return 0; fi
    if [ -n "${REGATTA_NO_INSTALL:-}" ]; then
        say "setup: $_command is missing: 'just setup' or 'sudo apt-get install $*' installs it"
        return 1
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        say "setup: $_command is missing and this system has no apt: install it yourself ($*)"
        return 1
    fi
    say "setup: installing $* (for $_command)"
    if [ -z "${_apt_updated:-}" ]; then
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update -qq >/dev/null || {
            say "setup: $_command is missing and cannot be installed without root: run 'sudo apt-get install $*'"
            return 1
        }
        _apt_updated=1
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" >/dev/null || {
        say "setup: could not install $*"
        return 1
    }
}

# need_debian_file FILE PACKAGE: as need_debian, for what is no command.
need_debian_file() {
    [ -e "$1" ] || need_debian "$1" "$2"
}

# need_cargo_tool COMMAND CRATE VERSION: installs a cargo tool at a pinned version unless the command is there.
need_cargo_tool() {
    command -v "$1" >/dev/null 2>&1 && return 0
    if [ -n "${REGATTA_NO_INSTALL:-}" ]; then
        say "setup: $1 is missing: 'just setup' or 'cargo install --locked $2 --version $3' installs it"
        return 1
    fi
    say "setup: building $2 $3 (once)"
    cargo install --quiet --locked "$2" --version "$3"
}

need_rust() {
    if ! command -v cargo >/dev/null 2>&1; then
        say "Rust is missing: install rustup, then run this again"
        return 1
    fi
    # The linker and the C compiler of ring, SQLite, libssh2 and libjpeg-turbo, the OpenSSL that libssh2 needs (docs/decisions/0062),
    # and what builds libjpeg-turbo (docs/decisions/0071).
    need_debian cc gcc libc6-dev
    need_debian pkg-config pkg-config
    need_debian_file /usr/include/openssl/ssl.h libssl-dev
    need_debian cmake cmake
    need_debian nasm nasm || say "setup: left out: fast JPEG decoding (nasm is missing)"
}
