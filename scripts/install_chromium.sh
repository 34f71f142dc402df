#!/bin/sh
# Installs Chromium, in which the tests open the pages of reports, with the system's package manager if that is
# possible. It is only for tests: if it cannot be had, this says so, and those tests are skipped.
set -u

there() {
    for name in chromium chromium-browser google-chrome; do
        command -v "$name" >/dev/null 2>&1 && return 0
    done
    return 1
}

give_up() {
    echo "penstock: no Chromium ($1); the tests that open a report in a browser will be skipped" >&2
    exit 0
}

there && exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || give_up "installing it takes root or sudo"
    # Never ask for a password for something that is not needed.
    sudo -n true >/dev/null 2>&1 || give_up "installing it takes root"
    as_root="sudo -n"
fi

echo "penstock: installing Chromium for the tests of reports" >&2
if command -v apt-get >/dev/null 2>&1; then
    $as_root apt-get update -q && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium
elif command -v dnf >/dev/null 2>&1; then
    $as_root dnf install -y chromium
elif command -v apk >/dev/null 2>&1; then
    $as_root apk add --no-cache chromium
elif command -v pacman >/dev/null 2>&1; then
    $as_root pacman -Sy --noconfirm chromium
elif command -v zypper >/dev/null 2>&1; then
    $as_root zypper --non-interactive install chromium
fi >&2

there || give_up "no package manager known here could install it"
