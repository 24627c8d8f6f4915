#!/bin/sh
# Runs the tests of store, ingest, campaigns and connections with a PostgreSQL server in place of SQLite files: each database of a test is a
# schema of that server. The server is Debian's, on a free port of loopback, and is removed at the end. Arguments go to the test runner.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh
need_debian pg_ctlcluster postgresql
programs=$(find /usr/lib/postgresql -name postgres -path '*/bin/*' | sort -V | tail -n 1)
programs=${programs%/*}
directory=$(mktemp -d)
port=$(python3 -c 'import socket; probe = socket.socket(); probe.bind(("127.0.0.1", 0)); print(probe.getsockname()[1])')
# The server refuses to run as root.
as_owner=
if [ "$(id -u)" -eq 0 ]; then
    chown nobody "$directory"
    as_owner="setpriv --reuid=nobody --clear-groups"
fi
# The directory is not readable for that user.
server() { (cd / && $as_owner "$programs/pg_ctl" -D "$directory/data" --silent --wait "$@"); }
trap 'server -m immediate stop || true; rm -rf "$directory"' EXIT
trap 'exit 130' INT TERM
(cd / && $as_owner "$programs/initdb" -D "$directory/data" --auth=trust --username=regatta --no-sync >/dev/null)
server -l "$directory/log" -o "-p $port -k $directory -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=300" start
"$programs/createdb" -h 127.0.0.1 -p "$port" -U regatta lab
packages='package(regatta-lab-store) + package(regatta-lab-net) + package(regatta-lab-runs) + package(regatta-campaigns)'
REGATTA_TEST_DATABASE="postgresql://regatta@127.0.0.1:$port/lab" \
    cargo nextest run --workspace --locked --no-fail-fast -E "$packages" "$@"
