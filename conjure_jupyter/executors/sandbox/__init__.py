"""Confines local commands: bubblewrap or Landlock on Linux, sandbox-exec on macOS.

``plan`` says what may be read and written, once for all kinds; each kind renders it. The sandbox stands
around the resident supervisor, so a call costs what it costs without. What is kept:

- writing only in the context's writable folders and in temporary folders of the sandbox's own. ``/tmp`` is
  such a one, not the machine's: sockets and caches of the user's other programs lie there, and what they
  load could be replaced. It lasts as long as the executor, on disk;
- no reading of dot-files and keys of the user, of other users, of sessions' logs, of sockets and tokens of
  running programs. The kernel's Python and the folders of the context stay readable wherever they lie;
- no network when ``network_access`` is ``none``;
- files that run code later (``sensitive.PERSISTENT``) at the top of a writable folder stay as they are, and
  those that are not there are not made. Deeper ones, such as the hooks of a repository that a command made
  in a subfolder, are the command's own.

What Landlock alone cannot keep is said in ``landlock``. The engine's own file tools run outside, and keep
to the same rules (``files``).
"""

from __future__ import annotations

from .boxes import Boxes
from .confinement import Confinement, Kind, Wish
from .files import ConfinedFiles

__all__ = ["Boxes", "ConfinedFiles", "Confinement", "Kind", "Wish"]
