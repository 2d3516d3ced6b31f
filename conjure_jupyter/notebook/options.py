"""The options of a magic's line, read without ever taking the user's words for a shell line.

Options stand at the start of the line. The first word that is no option begins free text, which is kept as
it is: apostrophes, braces, dollar signs and dashes in it mean nothing here.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Sequence

from ..errors import SettingsError


def split_options(parser: ArgumentParser, line: str) -> tuple[list[str], str]:
    """Options at the start of ``line`` as a list of arguments, and the rest of the line.

    ``--name value``, ``--name=value`` and quoted values are understood; ``--`` ends the options.

    Raises:
        SettingsError: an option is unknown, lacks its value, or has a quote that does not end.
    """
    known = {name: action for action in parser._actions for name in action.option_strings}  # noqa: SLF001
    arguments: list[str] = []
    rest = line.strip()
    while rest.startswith("-"):
        word, _, after = rest.partition(" ")
        if not word.strip("-"):  # the end of the options, or a dash that begins a sentence
            break
        name, has_value, value = word.partition("=")
        if name not in known:
            raise SettingsError(name, "no such option" + _nearest(name, known))
        rest = after.lstrip()
        arguments.append(name)
        if _is_flag(known[name]):
            if has_value:
                raise SettingsError(name, "takes no value")
            continue
        text, rest = _value(name, value + " " + after if has_value else rest)
        # The joined form lets a value begin with a dash.
        arguments[-1] = f"{name}={text}" if name.startswith("--") else f"{name}{text}"
    if rest == "--" or rest.startswith("-- "):
        rest = rest[2:].lstrip()
    return arguments, rest


def _is_flag(action: Action) -> bool:
    return action.nargs == 0


def _value(name: str, text: str) -> tuple[str, str]:
    if not text.strip():
        raise SettingsError(name, "needs a value")
    if text[0] in "'\"":
        end = text.find(text[0], 1)
        if end < 0:
            raise SettingsError(name, f"the quote {text[0]} does not end")
        return text[1:end], text[end + 1 :].lstrip()
    value, _, rest = text.partition(" ")
    return value, rest.lstrip()


def parse(parser: ArgumentParser, line: str) -> tuple[Namespace, str]:
    """The options at the start of a line, and the free text after them.

    Raises:
        SettingsError: an option is wrong.
    """
    from IPython.core.error import UsageError

    arguments, text = split_options(parser, line)
    try:
        return parser.parse_args(arguments), text
    except UsageError as error:
        name, _, reason = str(error).removeprefix("argument ").partition(": ")
        raise SettingsError(name, reason or "cannot be used") from None


def words(line: str) -> list[str]:
    """A line of paths: split at blanks, except inside a pair of quotes."""
    found: list[str] = []
    rest = line.strip()
    while rest:
        word, rest = _value("path", rest)
        found.append(word)
    return found


def no_text(command: str, text: str) -> None:
    """Refuse words where none belong.

    Raises:
        SettingsError: there are some.
    """
    if text:
        raise SettingsError(command, f"takes nothing after its options, got {text!r}")


def choose(word: str, known: Sequence[str], what: str) -> str:
    """``word``, when it is one of ``known``.

    Raises:
        SettingsError: it is not.
    """
    if word not in known:
        raise SettingsError(word, f"no such {what}" + _nearest(word, known))
    return word


def _nearest(name: str, known: Sequence[str] | dict[str, Action]) -> str:
    import difflib

    bare = {option.lstrip("-"): option for option in known}
    close = difflib.get_close_matches(name.lstrip("-"), list(bare), n=1)
    return f"; did you mean {bare[close[0]]!r}?" if close else f"; there are: {', '.join(known)}"
