# The commands of this repository for contributors (`cargo install just`). Each calls a script that works without `just` too.

# Lists the commands.
default:
    @just --list

# Installs what building and testing need: Debian packages, cargo tools, the references of the tests.
setup:
    REGATTA_SETUP_ONLY=1 ./test

# Runs the tests, or those that the arguments select. Installs nothing; skipped tests are listed with what they lack.
test *arguments:
    REGATTA_NO_INSTALL=1 ./test {{arguments}}

# Runs everything that must hold before a change lands.
ci:
    .ci/run

# Runs the long forms: fault campaigns, full equality with the official LoadGen, emulated boards.
long:
    .ci/long

# Makes all that is released, in dist-out.
dist *arguments:
    ./dist {{arguments}}

# Checks names of files, documents and formatting, in seconds.
check:
    tools/house-rules
    cargo fmt --all --check

# Builds the API documentation of all packages into a directory.
docs directory="target/site":
    tools/docs-site {{directory}}
