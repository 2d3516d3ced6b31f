#!/bin/sh
# Trust the certificates of /opt/conjure/certificates.pem, if there is one, everywhere: Java's package takes
# over what is trusted here when it is installed.
set -eu
given=/opt/conjure/certificates.pem
[ -e "$given" ] || exit 0
# One file each: of a file with several, only the first would get its link.
awk -v folder=/usr/local/share/ca-certificates '
    /^-----BEGIN (TRUSTED )?CERTIFICATE-----/ { file = sprintf("%s/conjure-%03d.crt", folder, ++count) }
    file { print > file }
    /^-----END (TRUSTED )?CERTIFICATE-----/ { close(file); file = "" }
' "$given"
update-ca-certificates 2>/dev/null
