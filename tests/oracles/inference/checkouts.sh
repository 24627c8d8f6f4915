#!/bin/sh
# Puts the official tools of every revision that the round files name side by side, out of a clone of mlcommons/inference:
# the oracles of `crates/submission-check/tests/official`, of the benchmark of the checkers, and of the tests of audits and
# truncation. Nothing of it is part of this repository.
#
#     tests/oracles/inference/checkouts.sh CLONE DIR
#     REGATTA_OFFICIAL_TOOLS=DIR cargo test -p regatta-submission-check --test official -- --nocapture
#
# They want python3; revisions since v6.0 want PyYAML, the audits NumPy.
set -eu
[ $# -eq 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
clone=$1 directory=$2
rounds=$(dirname "$0")/../../../configs/rounds
mkdir -p "$directory"

checkout() { # name, revision
    if [ -d "$directory/$1/tools" ] && { [ "$1" != v2.0 ] || [ -d "$directory/$1/vision" ]; }; then return 0; fi
    rm -rf "${directory:?}/$1"
    mkdir "$directory/$1"
    # Only what is run: the clone may lack large files of other directories. PyPI has no LoadGen of the oldest round, the last one with SSD.
    further=
    [ "$1" != v2.0 ] || further="loadgen vision/classification_and_detection/python"
    # shellcheck disable=SC2086 # empty, or words
    git -C "$clone" archive "$2" -- $further $(git -C "$clone" ls-tree --name-only "$2" tools/submission/ compliance/ |
        grep -v directory_structure_samples) | tar -x -C "$directory/$1"
    echo "$1"
}

for revision in $(sed -n 's/^revision = "\(.*\)"$/\1/p' "$rounds"/*.toml | sort -u); do
    checkout "$revision" "${revision#head-}"
done
# The tests of audits and truncation call the first tools of these rounds, and the newest HEAD.
for tag in v5.0 v5.1; do
    checkout "$tag" "$tag"
done
ln -sfn "$(basename "$(ls -d "$directory"/head-* | tail -n 1)")" "$directory/HEAD"
