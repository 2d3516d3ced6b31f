"""Run in a process of its own and killed: keeps contents for ever and prints the digest of each."""

from __future__ import annotations

import sys
from pathlib import Path

from conjure_jupyter.artifacts.blobs import BlobStore


def main(folder: Path) -> None:
    store = BlobStore(folder)
    source = folder.parent / "source"
    print("writing", flush=True)
    for number in range(1_000_000):
        data = f"{number} ".encode() * 300_000
        if number % 2:
            print(store.put(data), flush=True)
        else:
            source.write_bytes(data)
            print(store.put_file(source)[0], flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
