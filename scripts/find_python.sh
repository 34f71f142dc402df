#!/bin/sh
# Prints the first Python >= 3.11 that works here. The lock file was resolved for 3.11, so that one comes first.
for candidate in "$PYTHON" python3.11 python3.12 python3.13 python3 python; do
    [ -n "$candidate" ] || continue
    path=$(command -v "$candidate" 2>/dev/null) || continue
    if "$path" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        echo "$path"
        exit 0
    fi
done
cat >&2 <<'MESSAGE'
penstock: no Python 3.11 or newer with the `venv` module was found.
Install one (Debian, Ubuntu: `apt-get install python3 python3-venv`; Fedora: `dnf install python3`; macOS: `brew install python@3.11`)
or name it: `make setup PYTHON=/path/to/python3.11`.
MESSAGE
exit 1
