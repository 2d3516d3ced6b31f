#!/bin/sh
# Install the packages of Python and Node below a folder that becomes the root: packages.sh FOLDER
set -eu
staging=$1
mkdir -p "$staging"
# shellcheck disable=SC2086  # names of packages, to be split
python3 -m pip install --no-compile --no-warn-script-location --progress-bar off --root "$staging" \
    -r /opt/conjure/requirements.txt ${PIP_PACKAGES:-}
# Compiled once and never compared with the source again: nobody could write it there. Some packages carry
# sources that are no Python of this version; they stay as they are.
python3 -m compileall -qq -j 0 --invalidation-mode unchecked-hash -s "$staging" -p / "$staging" || true
if [ -n "${NPM_PACKAGES:-}" ]; then
    # shellcheck disable=SC2086
    npm install --global --prefix "$staging/usr/local" $NPM_PACKAGES
fi
