#!/bin/sh
# The user `sandbox` with its home, `python` beside `python3`, and nothing that lends another user's rights.
set -eu
if ! getent passwd sandbox >/dev/null; then
    # Ubuntu's images come with a user of this id: it gets the name and keeps what it owns, but no groups.
    taken=$(getent passwd 1000 | cut -d: -f1)
    if [ -n "$taken" ]; then
        usermod --login sandbox --home /home/sandbox --shell /bin/bash --groups "" "$taken"
        group=$(getent group 1000 | cut -d: -f1)
        if [ -n "$group" ] && ! getent group sandbox >/dev/null; then
            groupmod --new-name sandbox "$group"
        fi
    else
        useradd --no-create-home --home-dir /home/sandbox --shell /bin/bash --user-group --uid 1000 sandbox
    fi
fi
mkdir -p /home/sandbox /workspace
chown sandbox: /home/sandbox /workspace
chmod 1777 /workspace  # tools run as the notebook's user, whatever its number
command -v python >/dev/null || ln -s "$(command -v python3)" /usr/local/bin/python
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
