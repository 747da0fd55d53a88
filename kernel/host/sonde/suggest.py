"""suggest.py - a command line parser that suggests a name for a mistyped word.

It accepts words in front of options, between them and behind them.
"""

import argparse
import difflib
import re
import sys


def nearest(word, names):
    """ " (did you mean `NAME`?)", or "" if no name is similar."""
    near = difflib.get_close_matches(word, list(names), n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""


class Parser(argparse.ArgumentParser):
    """A parser; the parsers of its subcommands are of this class, too."""

    _is_mixed = False
    _chosen = None  # the parser of the subcommand that the command line names

    def parse_known_args(self, args=None, namespace=None):
        """Accept also `grade 3 --seed 7 FOLDER`; argparse would refuse FOLDER there."""
        self._chosen = self._commands().get(args[0] if args else None, self)
        if self._is_mixed or self._commands() or "--" in args:
            return super().parse_known_args(args, namespace)
        self._is_mixed = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_mixed = False

    def hide_defaults(self):
        """Let the result of parse_args() have only the options that are given."""
        self._hidden = {}
        for action in self._actions:
            if action.option_strings and action.default is not argparse.SUPPRESS:
                self._hidden[action.dest] = action.default
                action.default = argparse.SUPPRESS

    def given(self, options):
        """Return {name: how it is written} for each option and word that is given, and set
        the other options to their defaults."""
        found = {
            action.dest: [action.metavar, *action.option_strings][-1]
            for action in self._actions
            if getattr(options, action.dest, None) not in (None, [])
        }
        for name, default in self._hidden.items():
            vars(options).setdefault(name, default)
        return found

    def _commands(self):
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return action.choices
        return {}

    def _print_message(self, message, file=None):
        """Print help. argparse itself is silent if it cannot be written."""
        if file is sys.stderr:
            super()._print_message(message, file)
        else:
            file.write(message or "")

    def error(self, message):
        word = re.search(
            r"argument COMMAND: invalid choice: '([^']*)'|unrecognized arguments: (-[^ =]+)",
            message,
        )
        parser = self._chosen or self
        if word and word.group(1) is not None:
            message = f"no command is called {word.group(1)}"
            message += nearest(word.group(1), self._commands())
        elif word and word.group(2):
            names = parser._option_string_actions
            message = f"no option {word.group(2)}{nearest(word.group(2), names)}"
        message = re.sub(r"^argument (\S+): ", r"\1: ", message)
        self.exit(2, f"sonde: {message}; {parser.prog} --help shows what there is\n")
