"""write_folded.py - writes each stack in one line, with the number of its events.

An event without a stack has the name of its thread in place of the callers. For each CPU
with lost events there is another line.
"""

import collections

from . import slices


def stacks(recording):
    """Return {(frame, ...): how many events}, the outermost frame first. The events that
    a CPU has lost have a single frame, "(lost on CPU N)".
    """
    counts = collections.Counter()
    for one in slices.of(recording).found:
        callers = one.stack or [recording.name_of(one.pid)]
        label = recording.label(one.event)
        if callers[-1] == label:  # the stack of an event begins in its own function
            callers = callers[:-1]
        counts[(*callers, label)] += 1
    for cpu in range(len(recording.pages)):
        lost = recording.lost_before(cpu) + recording.lost_behind(cpu)
        if lost:
            counts[(f"(lost on CPU {cpu})",)] += lost
    return counts


def write(recording, file):
    for frames, count in sorted(stacks(recording).items()):
        line = ";".join(frame.replace(";", ":") for frame in frames)
        file.write(f"{line} {count}\n".encode())
