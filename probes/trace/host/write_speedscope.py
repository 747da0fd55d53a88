"""write_speedscope.py - writes profiles for speedscope: counts of events, and times.

The first profile counts events: each event is a sample under its callers. The lost events
of a CPU are one more frame. Then each thread in which functions returned has a profile of
the times of these functions. The format is that of SCHEMA.
"""

import json

from . import slices, write_folded


SCHEMA = "https://www.speedscope.app/file-format-schema.json"


class Frames:
    """Numbers the names of frames."""

    def __init__(self):
        self.numbers = {}

    def __getitem__(self, name):
        return self.numbers.setdefault(name, len(self.numbers))

    def as_list(self):
        return [{"name": name} for name in self.numbers]


def counts(recording, frames):
    found = sorted(write_folded.stacks(recording).items())
    weights = [count for _, count in found]
    return {
        "type": "sampled",
        "name": "events",
        "unit": "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[frames[name] for name in stack] for stack, _ in found],
        "weights": weights,
    }


def times(recording, frames, pid, found):
    """Return the profile of a thread's slices; None: it has no slices."""
    events, ends = [], []

    def close(until):
        while ends and ends[-1][0] <= until:
            end, frame = ends.pop()
            events.append({"type": "C", "frame": frame, "at": end - start})

    found = [one for one in found if not one.is_instant]
    if not found:
        return None
    start = min(one.begin for one in found)
    for one, end in slices.nested(found):
        close(one.begin)
        frame = frames[one.name]
        events.append({"type": "O", "frame": frame, "at": one.begin - start})
        ends.append((end, frame))
    close(float("inf"))
    return {
        "type": "evented",
        "name": f"{recording.name_of(pid)}-{pid}",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": max(event["at"] for event in events),
        "events": events,
    }


def write(recording, file):
    frames = Frames()
    threads = slices.of(recording).by_thread()
    profiles = [counts(recording, frames)]
    profiles += [times(recording, frames, pid, found) for pid, found in threads.items()]
    data = {
        "$schema": SCHEMA,
        "name": "sonde: " + ", ".join(recording.lines),
        "exporter": "sonde",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.as_list()},
        "profiles": [profile for profile in profiles if profile],
    }
    file.write(json.dumps(data).encode())
