#!/bin/sh
# Install packages of the distribution: apt-install.sh NAME... ; ?NAME only where there is such a package.
# APT_MIRROR replaces http://archive.ubuntu.com and http://deb.debian.org. Neither it nor a list stays behind.
set -eu
command -v apt-get >/dev/null || {
    echo "the base image has no apt-get: it must be a Debian or an Ubuntu" >&2
    exit 1
}
export DEBIAN_FRONTEND=noninteractive
packages=$*
set -- -o Acquire::Retries=3 -o Dpkg::Use-Pty=0
if [ -n "${APT_MIRROR:-}" ]; then
    cp -r /etc/apt /tmp/apt
    find /tmp/apt \( -name '*.sources' -o -name '*.list' \) -exec sed -i -E \
        "s#https?://(deb|security|archive|ports)\.(debian|ubuntu)\.(org|com)#${APT_MIRROR%/}#" {} +
    set -- "$@" -o Dir::Etc::SourceList=/tmp/apt/sources.list -o Dir::Etc::SourceParts=/tmp/apt/sources.list.d
fi
# A mirror may need the given certificates before the package that makes them everybody's.
given=/opt/conjure/certificates.pem
if [ ! -e /etc/ssl/certs/ca-certificates.crt ] && [ -e "$given" ]; then
    set -- "$@" -o Acquire::https::CaInfo="$given"
fi
apt-get "$@" update -q
wanted=
for name in $packages; do
    case $name in
    \?*)
        name=${name#\?}
        if ! apt-cache "$@" show "$name" >/dev/null 2>&1; then
            echo "notice: this base has no package $name; what needs it will not work"
            continue
        fi
        ;;
    esac
    wanted="$wanted $name"
done
mkdir -p /usr/share/man/man1  # Java's packages fail without it
# shellcheck disable=SC2086  # names of packages, to be split
apt-get "$@" install -q -y --no-install-recommends $wanted
rm -rf /tmp/apt /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/log/apt /var/log/dpkg.log
