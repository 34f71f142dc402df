#!/bin/sh
# Makes sure that `javac` 17 or newer is there; installs a JDK 17 with the system's package manager otherwise.
set -u

javac_release() {
    javac=javac
    [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/javac" ] && javac="$JAVA_HOME/bin/javac"
    "$javac" -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p'
}

good_enough() {
    release=$(javac_release)
    [ -n "$release" ] && [ "$release" -ge 17 ]
}

refuse() {
    echo "penstock: a JDK 17 or newer (\`javac\`) is needed to build the Java bridge: $1" >&2
    echo "Install one by hand, for example from https://adoptium.net, set JAVA_HOME to it, and run this again." >&2
    exit 1
}

good_enough && exit 0

as_root=""
if [ "$(id -u)" -ne 0 ] && ! command -v brew >/dev/null 2>&1; then
    command -v sudo >/dev/null 2>&1 || refuse "none was found, and installing it takes root or sudo."
    as_root="sudo"
fi

echo "penstock: no javac 17 or newer; installing a JDK 17 with the system's package manager" >&2
if command -v apt-get >/dev/null 2>&1; then
    $as_root apt-get update -q && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends openjdk-17-jdk-headless
elif command -v dnf >/dev/null 2>&1; then
    $as_root dnf install -y java-17-openjdk-devel
elif command -v yum >/dev/null 2>&1; then
    $as_root yum install -y java-17-openjdk-devel
elif command -v apk >/dev/null 2>&1; then
    $as_root apk add --no-cache openjdk17-jdk
elif command -v pacman >/dev/null 2>&1; then
    $as_root pacman -Sy --noconfirm jdk17-openjdk
elif command -v zypper >/dev/null 2>&1; then
    $as_root zypper --non-interactive install java-17-openjdk-devel
elif command -v brew >/dev/null 2>&1; then
    brew install openjdk@17
else
    refuse "none was found, and no package manager known here (apt-get, dnf, yum, apk, pacman, zypper, brew)."
fi

good_enough || refuse "the package manager ran, but \`javac -version\` does not say 17 or newer."
