#!/bin/sh
# Puts Prometheus and promtool beside the virtual environment $1, from Debian's package. Nothing is installed in the
# system and no service is started. They are only for tests: if they cannot be had, this says so, and those are skipped.
set -u

place="$1/prometheus"

give_up() {
    echo "penstock: no Prometheus ($1); the tests of alerts will be skipped" >&2
    exit 0
}

command -v promtool >/dev/null 2>&1 && command -v prometheus >/dev/null 2>&1 && exit 0
test -x "$place/usr/bin/promtool" && exit 0
command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || give_up "Debian's package manager is not here"

fetched=$(mktemp -d) || give_up "no temporary directory"
trap 'rm -rf "$fetched"' EXIT
cd "$fetched" || give_up "no temporary directory"
echo "penstock: fetching Prometheus for the tests of alerts" >&2
apt-get download -q prometheus >&2 2>/dev/null || {
    # The lists of packages may be missing; renewing them takes root.
    apt-get update -q >&2 && apt-get download -q prometheus >&2
} || give_up "Debian's package could not be fetched"
mkdir -p "$place"
dpkg -x prometheus_*.deb "$place" || give_up "Debian's package could not be unpacked"
