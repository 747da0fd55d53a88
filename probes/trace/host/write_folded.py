"""write_folded.py - stacks in one line each, with how often they were seen.

Where no stack was recorded the thread's name stands in its place. Events that were lost
are a line of their own, for each CPU.
"""

import collections

from . import slices



def stacks(recording):
    """{(frame, ...): how often}, the outermost frame first; (frame,): lost on a CPU."""
    counts = collections.Counter()
    for one in slices.of(recording).found:
        callers = one.stack or [recording.name_of(one.pid)]
        counts[(*callers, recording.label(one.event))] += 1
    for cpu in range(len(recording.pages)):
        lost = recording.lost_before(cpu) + recording.lost_behind(cpu)
        if lost:
            counts[(f"(lost on CPU {cpu})",)] += lost
    return counts


def write(recording, file):
    for frames, count in sorted(stacks(recording).items()):
        line = ";".join(frame.replace(";", ":") for frame in frames)
        file.write(f"{line} {count}\n".encode())
