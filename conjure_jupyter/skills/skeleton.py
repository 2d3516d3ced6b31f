"""A new skill to start from: valid, with a script that runs and a reference."""

from __future__ import annotations

from pathlib import Path

from ..errors import InvalidSkillStructureError
from .naming import name_problems, normalise

_SKILL_MD = """---
name: {name}
description: Counts the lines, words and characters of text files. Use when the user asks how long a text is.
license: MIT
metadata:
  version: "0.1"
---

# {title}

1. Run the script on the user's file:

   ```bash
   python scripts/count.py FILE
   ```

2. Report the numbers in one sentence. What they mean is in `references/format.md`.

If the script fails, say what it printed.
"""

_SCRIPT = '''#!/usr/bin/env python3
"""Count the lines, words and characters of text files; prints one JSON object a line."""

import json
import sys
from pathlib import Path


def main(paths: list[str]) -> int:
    if not paths:
        print("usage: count.py FILE...", file=sys.stderr)
        return 2
    for path in paths:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
        counts = {"lines": len(text.splitlines()), "words": len(text.split()), "characters": len(text)}
        print(json.dumps({"file": path, **counts}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''

_REFERENCE = """# Output of count.py

One JSON object a line, one line for each file:

| key | meaning |
|---|---|
| `file` | the path as it was given |
| `lines` | lines, the last one included when it does not end in a line break |
| `words` | what stands between blanks |
| `characters` | Unicode characters, not bytes |
"""


def init_skill(name: str, parent: Path) -> Path:
    """Make the folder of a new skill.

    Args:
        name: the skill's name, by the public rules.
        parent: the folder to make it in.

    Returns:
        The skill's folder.

    Raises:
        InvalidSkillStructureError: the name breaks a rule, or there is such a folder already.
    """
    folder = parent / name
    problems = (
        name_problems(name) if name == normalise(name) and name else [f"{name!r} is no name of a skill"]
    )
    if problems:
        raise InvalidSkillStructureError(folder, "; ".join(problems))
    title = name.replace("-", " ").capitalize()
    try:
        folder.mkdir()
        (folder / "scripts").mkdir()
        (folder / "references").mkdir()
        (folder / "SKILL.md").write_text(_SKILL_MD.format(name=name, title=title), encoding="utf-8")
        (folder / "references/format.md").write_text(_REFERENCE, encoding="utf-8")
        script = folder / "scripts/count.py"
        script.write_text(_SCRIPT, encoding="utf-8")
        script.chmod(0o755)
    except OSError as error:
        raise InvalidSkillStructureError(folder, error.strerror or str(error)) from error
    return folder
