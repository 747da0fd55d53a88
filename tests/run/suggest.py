"""suggest.py - a command line parser that tells what a mistyped word may have meant."""

import argparse
import difflib
import re


def nearest(word, names):
    """" (did you mean `NAME`?)", or "" when no name is near."""
    near = difflib.get_close_matches(word, list(names), n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""


class Parser(argparse.ArgumentParser):
    """Its parsers of subcommands are of this class, too."""

    def _commands(self):
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return action.choices
        return {}

    def _options(self):
        names = list(self._option_string_actions)
        for parser in self._commands().values():
            names += parser._option_string_actions
        return names

    def error(self, message):
        word = re.search(
            r"invalid choice: '([^']*)'|unrecognized arguments: (-[^ =]+)", message)
        if word and word.group(1) is not None and "argument COMMAND" in message:
            message = f"no command is called {word.group(1)}"
            message += nearest(word.group(1), self._commands())
        elif word and word.group(2):
            message = f"no option {word.group(2)}{nearest(word.group(2), self._options())}"
        super().error(message)
