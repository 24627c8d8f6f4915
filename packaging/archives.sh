# Functions that package.sh and coordinator.sh share. Source it once `here` names this directory. The same files produce the same bytes: owners, order
# and times are fixed, and the time is SOURCE_DATE_EPOCH, or that of the last commit by default.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || echo 0)}
umask 022

workspace_version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml"; }

# add_cli_docs PROGRAM DOCS TREE ZSH: installs man pages and completions below share/ in the tree. ZSH is the directory for zsh's functions, which
# differs between Debian packages and a prefix such as ~/.local.
add_cli_docs() {
    local program=$1 docs=$2 share=$3/share zsh=$4
    install -d "$share/man/man1"
    install -m 0644 "$docs/$program"*.1 "$share/man/man1/"
    gzip -9nf "$share/man/man1/$program"*.1
    install -D -m 0644 "$docs/$program.bash" "$share/bash-completion/completions/$program"
    install -D -m 0644 "$docs/_$program" "$share/zsh/$zsh/_$program"
    install -D -m 0644 "$docs/$program.fish" "$share/fish/vendor_completions.d/$program.fish"
}

# write_control TREE PACKAGE VERSION ARCHITECTURE DEPENDS SUMMARY <DESCRIPTION
write_control() {
    local tree=$1 package=$2 version=$3 architecture=$4 depends=$5 summary=$6
    mkdir -p "$tree/DEBIAN"
    {
        printf '%s: %s\n' Package "$package" Version "$version" Architecture "$architecture" Maintainer "The Regatta authors <regatta@localhost>" \
            Section utils Priority optional Depends "$depends" Installed-Size "$(content_kib "$tree")" Description "$summary"
        sed 's/^/ /'
    } >"$tree/DEBIAN/control"
}

# Adds up the sizes of the files, because the output of `du` depends on the disk.
content_kib() { find "$1" -path "$1/DEBIAN" -prune -o -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum + 0 }'; }

# close_package TREE FILE LEVEL
close_package() {
    (cd "$1" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    # Uses gzip instead of xz, because `regatta device deploy` reads the package without dpkg.
    dpkg-deb --root-owner-group -Zgzip "-z$3" --build "$1" "$2" >/dev/null
}

# close_archive DIRECTORY NAME FILE LEVEL
close_archive() {
    tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$2" | gzip "-${4}n" >"$3"
}
