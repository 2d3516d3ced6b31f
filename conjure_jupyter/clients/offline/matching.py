"""Which skill a prompt is about, by the words it shares with names and descriptions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from .reading import ListedSkill
from .vocabulary import STOP

_ENDINGS = re.compile(r"(?:ising|izing|ised|ized|ises|izes|ise|ize|ies|ing|ers|er|ed|es|e|s|y)$")

#: How much a shared word counts by where the skill has it.
_IN_NAME, _IN_DESCRIPTION = 2.0, 1.0

#: A single word shared with a long description is chance, unless it is in the name too.
_LEAST = 2.0


def choose_skill(prompt: str, files: Sequence[str], skills: Sequence[ListedSkill]) -> ListedSkill | None:
    """The skill that fits a prompt best, or None.

    A skill named in the prompt wins, the first named of several. Otherwise words count more the fewer
    skills have them; an equal score goes to the skill listed first.

    Args:
        prompt: the user's words.
        files: paths the prompt is about; what kind they are counts as a word of the name would.
        skills: those on offer.
    """
    named = [(position, skill) for skill in skills if (position := _position(skill.name, prompt)) is not None]
    if named:
        return min(named, key=lambda found: found[0])[1]

    kinds = {stem(path.rpartition(".")[2].lower()) for path in files if "." in path.rpartition("/")[2]}
    wanted = words(prompt) | kinds
    descriptions = [words(skill.description) for skill in skills]
    names = [words(skill.name) for skill in skills]
    spread = Counter(word for pair in zip(names, descriptions, strict=True) for word in pair[0] | pair[1])
    best: tuple[float, ListedSkill] | None = None
    for skill, name, description in zip(skills, names, descriptions, strict=True):
        shared = wanted & (name | description)
        weights = {
            word: _IN_DESCRIPTION * (word in description) + _IN_NAME * (word in name or word in kinds)
            for word in shared
        }
        if sum(weights.values()) < _LEAST:
            continue
        score = sum(weight * math.log(1 + len(skills) / spread[word]) for word, weight in weights.items())
        if best is None or score > best[0]:
            best = score, skill
    return best[1] if best else None


def words(text: str) -> frozenset[str]:
    """The stems of a text's telling words."""
    found = re.findall(r"[^\W_]+", text.lower())
    return frozenset(
        stem(word) for word in found if word not in STOP and (len(word) > 1 or not word.isascii())
    )


def stem(word: str) -> str:
    """A word without its ending, so that ``summarise``, ``summarize`` and ``summary`` are one."""
    cut = _ENDINGS.sub("", word)
    return cut if len(cut) > 2 else word


def _position(name: str, prompt: str) -> int | None:
    """Where a prompt names a skill: as it is written, or with spaces for its hyphens."""
    if not name:
        return None
    spelled = re.escape(name).replace(r"\-", r"[-_ ]") if "-" in name else re.escape(name)
    # A name of one ordinary word ("pdf") is in many a prompt by chance; then it has to be called a skill.
    pattern = (
        rf"(?<![\w-]){spelled}(?![\w-])"
        if "-" in name
        else rf"(?<![\w-]){spelled} skill\b|\bskill(?:://| ){spelled}(?![\w-])"
    )
    found = re.search(pattern, prompt, re.IGNORECASE)
    return found.start() if found else None
