"""Starting the resident: the few lines that a container's Python is given, and what its failure means."""

from __future__ import annotations

import re

#: The oldest Python that it runs on.
OLDEST = (3, 10)

#: Reads the payload from standard input, puts it into a private folder and runs the server. Speaks any
#: Python 3; one that is too old says so in a frame and ends.
BOOT = f"""
import os, sys
def take(size):
    found = b""
    while len(found) < size:
        piece = os.read(0, min(size - len(found), 65536))
        if not piece:
            sys.exit(1)
        found += piece
    return found
def unpack(parent, files):
    folder = os.path.join(parent, "resident-" + os.urandom(8).hex())
    os.mkdir(folder, 0o700)
    for name in files:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(files[name])
    return folder
def main():
    if sys.version_info < {OLDEST}:
        said = ('{{"old": "%d.%d"}}' % sys.version_info[:2]).encode()
        os.write(1, len(said).to_bytes(4, "big") + bytes(4) + said)
        sys.exit(1)
    import json, zlib
    files = json.loads(zlib.decompress(take(int.from_bytes(take(4), "big"))))
    for parent in ("/run/conjure", os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp", "/dev/shm"):
        try:
            folder = unpack(parent, files)
            break
        except OSError as error:
            said = error
    else:
        sys.exit("no folder can be written: %s" % said)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    sys.modules["ssl"] = None
    from conjure_jupyter.executors.docker.resident import server
    server.main(folder)
main()
"""

#: What to run in the container. Nothing of the image's own settings of Python counts.
ARGUMENTS = ("python3", "-I", "-S", "-X", "utf8", "-c", BOOT)

_NO_PROGRAM = re.compile(
    r"not found|no such file or directory|exec format error|permission denied", re.IGNORECASE
)


def says_no_python(words: str) -> bool:
    """Whether the words of an engine or a shell mean that there is no ``python3``, or none that runs."""
    return "Traceback" not in words and _NO_PROGRAM.search(words) is not None
