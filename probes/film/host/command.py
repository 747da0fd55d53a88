"""command.py - `./sonde film`: plays a film, prints it as text, draws or records it."""

import os
import sys

from sonde.errors import writing
from sonde.guest import BUILD
from sonde.options import UsageError
from sonde.suggest import nearest

from . import film as films
from . import page, picture, play, scenes


def path_of(name):
    """The path of a film of docs/films if @name is its name; else @name is a path."""
    ours = os.path.join(scenes.FOLDER, name + ".jsonl")
    return ours if name in scenes.SCENES and not os.path.isfile(name) else name


def write(text, output):
    if output is None:
        sys.stdout.write(text)
        return
    with writing(output), open(output, "w", encoding="utf-8") as file:
        file.write(text)


def load(name):
    path = path_of(name)
    if not os.path.exists(path):
        raise UsageError(
            f"film: {name} is neither a file nor a film{nearest(name, scenes.SCENES)}"
        )
    try:
        return films.load(path)
    except films.FilmError as error:
        raise UsageError(f"film: {error}") from None


def command_play(options):
    play.play(load(options.films[0]))


def command_text(options):
    lines = [line for name in options.films for line in films.as_text(load(name))]
    write("\n".join(lines) + "\n", options.output)


def command_html(options):
    some = [load(name) for name in options.films or scenes.SCENES]
    output = options.output or os.path.join(BUILD, "film.html")
    os.makedirs(os.path.dirname(output) or ".", exist_ok=True)
    with writing(output), open(output, "w", encoding="utf-8") as file:
        page.write(some, file)
    shown = options.output or os.path.relpath(output)
    print(f"{shown}: {len(some)} films, for a browser")


def command_svg(options):
    film = load(options.films[0])
    known = {str(number): number for number in range(len(film.frames()))}
    words = (options.frames or f"0,{len(known) - 1}").split(",")
    if not known.keys() >= set(words):
        raise UsageError(
            f"film: the frames of {options.films[0]} are 0 to {len(known) - 1}"
        )
    numbers = [known[word] for word in words]
    write("\n".join(picture.strip(film, numbers)) + "\n", options.output)


ONE = ("play", "svg", "record")  # these take one film
WAYS = {
    "play": command_play,
    "text": command_text,
    "html": command_html,
    "svg": command_svg,
}


def run(options, ask):
    """@ask: `with ask() as fn` makes a guest; fn runs a command in it."""
    if options.way != "html" and not options.films:
        names = ", ".join(scenes.SCENES)
        raise UsageError(f"film {options.way}: of which film? {names}")
    if len(options.films) > 1 and options.way in ONE:
        raise UsageError(f"film {options.way}: one FILM at a time")
    if options.way in WAYS:
        WAYS[options.way](options)
        return
    name = options.films[0]
    if name not in scenes.SCENES:
        raise UsageError(f"film record: {name} is none of {', '.join(scenes.SCENES)}")
    scene = scenes.SCENES[name]
    if isinstance(scene, scenes.Trail):
        text = scenes.from_spin(scene)
    else:
        with ask() as fn:
            text = scenes.finish(scene, scenes.record(scene, fn))
    write(text, options.output)
