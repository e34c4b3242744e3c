"""What a launch command says: the variables in front of it and its flags. It is read, never run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from stackctl.model.errors import StackctlError
from stackctl.probes.environment import NotThere, Unsure

_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)


@dataclass(frozen=True)
class Launch:
    """One launch command, split as a shell would."""

    words: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)

    def flag(self, flag: str) -> str:
        """The value of a flag, "" if it has none. Raises NotThere; Unsure where something else may give it."""
        value = None
        for index, word in enumerate(self.words):
            name, equals, given = word.partition("=")
            if name == flag:  # the last one counts, as argparse has it
                following = self.words[index + 1] if index + 1 < len(self.words) else ""
                value = given if equals else "" if following.startswith("-") else following
        if value is not None:
            return value
        for word in self.words:
            name = word.partition("=")[0]
            if name.startswith("--") and len(name) > 2 and flag.startswith(name):
                raise Unsure(f"{name} may be short for {flag}")
            if name == "--config":
                raise Unsure(f"the file given with --config may hold {flag.lstrip('-')}")
            if "$" in word:
                raise Unsure(f"the shell would replace {word}, which may hold {flag}")
        raise NotThere(f"{flag} is not passed")


def parse_launch(command: str) -> Launch:
    """A launch command as a person would type it. Raises StackctlError if its quotes are open."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError as error:
        raise StackctlError(f"the launch command cannot be split: {error}", hint="quote it as for a shell") from None
    variables: dict[str, str] = {}
    rest = words[1:] if words[:1] == ["env"] else words
    while rest and (match := _VARIABLE.match(rest[0])):
        variables[match[1]] = match[2]
        rest = rest[1:]
    return Launch(tuple(rest), variables)
