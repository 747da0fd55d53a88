#!/usr/bin/env python3
"""test_film.py - tests of the films in docs/films, the players, the README's picture."""

import io
import json
import os
import sys

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, scratch.ROOT)
from probes.film.host import command, film, page, picture, play, scenes

# The picture in the README. tests/tools/test_film.py --write draws it again.
PICTURE = os.path.join(scenes.FOLDER, "poke.svg")
FRAMES = (1, 3, 18, 33)

SMALL = {"film": 1, "cpus": 2, "ms": 0, "at": "fn+0x4", "bytes": "48 89"}


def small(*events):
    return film.parse(scenes.lines(SMALL, events))


def picture_text():
    return "\n".join(picture.strip(film.load(command.path_of("poke")), FRAMES)) + "\n"


class Films(scratch.Scratch):
    def test_there_are_ten_and_each_can_be_read(self):
        files = os.listdir(scenes.FOLDER)
        names = sorted(name[:-6] for name in files if name.endswith(".jsonl"))
        self.assertEqual(names, sorted(scenes.SCENES))
        self.assertEqual(len(names), 10)
        for name in names:
            self.assertGreater(len(film.load(command.path_of(name)).frames()), 5, name)

    def test_those_of_models_are_what_spin_finds_today(self):
        for name, scene in scenes.SCENES.items():
            if isinstance(scene, scenes.Trail):
                with open(command.path_of(name), encoding="utf-8") as file:
                    self.assertEqual(file.read(), scenes.from_spin(scene), name)

    def test_a_mutants_film_ends_where_a_cpu_may_have_old_and_new(self):
        one = film.load(command.path_of("poke-without-guard"))
        last = one.frames()[-1]
        self.assertTrue(
            any(
                set(values) >= {"O1", "N1"}
                for fetched in last.fetched
                for values in fetched
            )
        )
        self.assertFalse(any(event.get("bytes") == "cc" for event in one.events))
        self.assertEqual(one.events[-1]["ev"], "end")

    def test_those_of_the_machine_keep_to_the_protocol(self):
        for name in ("poke", "jump", "pun", "region"):
            one = film.load(command.path_of(name))
            stores = [event for event in one.events if event["ev"] == "store"]
            self.assertEqual(stores[0]["bytes"], "cc", name)
            self.assertEqual(stores[-1]["at"], one.head["at"], name)
            for frame in one.frames():
                for fetched in frame.fetched:
                    if len(fetched[0]) == 1 and fetched[0][0] != "cc":
                        torn = [values for values in fetched if len(values) > 1]
                        self.assertEqual(torn, [], f"{name} {frame.number}")

    def test_the_picture_of_the_readme_is_current(self):
        with open(PICTURE, encoding="utf-8") as file:
            self.assertEqual(file.read(), picture_text())
        with open(os.path.join(scratch.ROOT, "README.md"), encoding="utf-8") as file:
            self.assertIn("(docs/films/poke.svg)", file.read())

    def test_what_a_cpu_may_have_fetched(self):
        one = small(
            {"t": 1, "cpu": 0, "ev": "store", "at": "fn+0x5", "bytes": "cc"},
            {"t": 2, "cpu": 0, "ev": "store", "at": "fn+0x5", "bytes": "90"},
            {"t": 3, "cpu": 1, "ev": "ack", "at": "fn+0x4"},
            {"t": 4, "cpu": 0, "ev": "trap", "at": "fn+0x4"},
        )
        frames = one.frames()
        self.assertEqual(frames[0].fetched[0], (("48",), ("89",)))
        self.assertEqual(frames[2].fetched[0], (("48",), ("89", "cc", "90")))
        self.assertEqual(frames[3].fetched[1], (("48",), ("90",)))
        self.assertEqual(frames[3].fetched[0], (("48",), ("89", "cc", "90")))
        self.assertEqual(frames[4].stands, ("in a trap at +0x4", "in the program"))
        self.assertEqual(one.last_bytes(), ("48", "90"))

    def test_what_is_no_film(self):
        head = json.dumps(SMALL)
        for text in (
            "",
            "x",
            "{}",
            "[]",
            "7",
            head + "\n{}",
            head + '\n{"ev": "blink"}',
            head + '\n{"ev": "ack", "cpu": 2}',
            head + "\nnull",
            head + '\n{"ev": "ack"}',
            head + '\n{"ev": "store", "at": "fn+0x4"}',
            head + '\n{"ev": "store", "at": "fn+0x6", "bytes": "cc"}',
            head + '\n{"ev": "run", "cpu": 0, "at": "fn", "bytes": 1, "stand": "{x}"}',
            head + '\n{"ev": "note", "say": "\\ud83d"}',
            head.replace("2", "1000000000"),
            head.replace("2", "2.0"),
            head.replace('"ms"', '"labels": ["a"], "ms"'),
            head.replace('"ms"', '"title": 7, "ms"'),
            "[" * 100000,
        ):
            with self.assertRaises(film.FilmError, msg=text):
                film.parse(text)
        with self.assertRaises(film.FilmError):
            film.load(self.path("none"))

    def test_keys(self):
        player = play.Player(film.load(command.path_of("hit")))
        last = len(player.frames) - 1
        player.tick()
        self.assertEqual((player.at, player.playing), (1, True))
        for key, at in (
            ("next", 2),
            ("back", 1),
            ("first", 0),
            ("back", 0),
            ("last", last),
            ("next", last),
        ):
            player.press(key)
            self.assertEqual((player.at, player.playing), (at, False), key)
        player.press("pause")
        self.assertEqual((player.at, player.playing), (0, True))
        for _ in range(last + 1):
            player.tick()
        self.assertEqual((player.at, player.playing), (last, False))
        player.press("leave")
        self.assertTrue(player.over)

    def test_eighty_columns_and_forty(self):
        for name in scenes.SCENES:
            player = play.Player(film.load(command.path_of(name)))
            for width in (80, 40):
                for player.at in range(len(player.frames)):
                    lines = list(player.lines(width))
                    self.assertLessEqual(max(map(len, lines)), width, name)

    def test_the_page_needs_no_other_file_and_tells_it_in_words(self):
        text = io.StringIO()
        page.write([film.load(command.path_of(name)) for name in scenes.SCENES], text)
        whole = text.getvalue()
        for word in (" src=", "href=", "@import", "url("):
            self.assertNotIn(word, whole)
        self.assertIn('aria-live="polite"', whole)
        self.assertIn("prefers-color-scheme: dark", whole)
        for frame in film.load(command.path_of("hit")).frames():
            self.assertIn(json.dumps(frame.said), whole)

    def test_markup_in_a_film_stays_text(self):
        nasty = small({"ev": "note", "say": "</script><b>x"})
        text = io.StringIO()
        page.write([nasty], text)
        self.assertNotIn("</script><b>", text.getvalue())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with open(PICTURE, "w", encoding="utf-8") as out:
            out.write(picture_text())
        sys.exit()
    scratch.main()
