"""write_pftrace.py - Perfetto's trace: a track for each CPU and each thread.

A CPU's track shows which thread was seen on it, and beside it a counter of the events that
it lost. A thread's track has slices for what returned and instants for the other probes.

The numbers of the fields are Perfetto's (protos/perfetto/trace).
"""

from . import pages, slices
from .protobuf import content, number

# TracePacket
TIMESTAMP, SEQUENCE, EVENT, SEQUENCE_FLAGS, DESCRIPTOR, PACKET = 8, 10, 11, 13, 60, 1
CLEARED = 1
# TrackDescriptor, and what is in it
UUID, NAME, PROCESS, THREAD, PARENT, COUNTER = 1, 2, 3, 4, 5, 8
PROCESS_PID, PROCESS_NAME = 1, 6
THREAD_PID, THREAD_TID, THREAD_NAME = 1, 2, 5
# TrackEvent
ANNOTATION, TYPE, TRACK, EVENT_NAME, VALUE = 4, 9, 11, 23, 30
BEGIN, END, INSTANT, COUNT = 1, 2, 3, 4
ANNOTATION_UINT, ANNOTATION_INT, ANNOTATION_STRING, ANNOTATION_NAME = 3, 4, 6, 10

KERNEL = 1  # the process that all threads are of
CPUS, LOST, THREADS = 1 << 32, 2 << 32, 3 << 32  # bases of tracks' numbers


class Writer:
    def __init__(self, recording, file):
        self.recording = recording
        self.file = file
        self.is_first = True

    def packet(self, *fields):
        data = b"".join(fields) + number(SEQUENCE, 1)
        if self.is_first:
            data += number(SEQUENCE_FLAGS, CLEARED)
        self.is_first = False
        self.file.write(content(PACKET, data))

    def track(self, uuid, *fields):
        self.packet(content(DESCRIPTOR, number(UUID, uuid) + b"".join(fields)))

    def event(self, time, kind, track, *fields):
        data = number(TYPE, kind) + number(TRACK, track) + b"".join(fields)
        self.packet(number(TIMESTAMP, time), content(EVENT, data))

    def tracks(self, threads):
        process = number(PROCESS_PID, KERNEL) + content(PROCESS_NAME, "sonde")
        self.track(KERNEL, content(PROCESS, process))
        for cpu in range(len(self.recording.pages)):
            self.track(CPUS + cpu, number(PARENT, KERNEL), content(NAME, f"CPU {cpu}"))
            self.track(LOST + cpu, number(PARENT, KERNEL),
                       content(NAME, f"CPU {cpu}: events lost"), content(COUNTER, b""))
        for pid in threads:
            # No thread may have the number of the process, or 0, which means idle there.
            thread = number(THREAD_PID, KERNEL) + number(THREAD_TID, KERNEL + 1 + pid)
            thread += content(THREAD_NAME, f"{self.recording.name_of(pid)}-{pid}")
            self.track(THREADS + pid, content(THREAD, thread))

    def cpus(self):
        for cpu, row in enumerate(slices.running(self.recording)):
            for pid, first, last in row:
                self.event(first, BEGIN, CPUS + cpu,
                           content(EVENT_NAME, f"{self.recording.name_of(pid)}-{pid}"))
                self.event(last, END, CPUS + cpu)

    def losses(self):
        counts = [0] * len(self.recording.pages)
        last = 0
        for event in self.recording.all_events:
            last = event.time
            if event.missed:
                counts[event.cpu] += 1 if event.missed == pages.SOME else event.missed
                self.event(last, COUNT, LOST + event.cpu, number(VALUE, counts[event.cpu]))
        for cpu, count in enumerate(counts):
            count += self.recording.lost_behind(cpu)
            self.event(last, COUNT, LOST + cpu, number(VALUE, count))

    def annotations(self, event):
        for field in event.format.arguments:
            value = event.values[field.name]
            name = content(ANNOTATION_NAME, field.name)
            if isinstance(value, int):
                kind = ANNOTATION_INT if field.is_signed else ANNOTATION_UINT
                yield content(ANNOTATION, name + number(kind, value))
            else:
                yield content(ANNOTATION, name + content(ANNOTATION_STRING, str(value)))

    def thread(self, pid, found):
        ends = []
        for one, end in slices.nested(found):
            while ends and ends[-1] <= one.begin:
                self.event(ends.pop(), END, THREADS + pid)
            kind = INSTANT if one.is_instant else BEGIN
            self.event(one.begin, kind, THREADS + pid, content(EVENT_NAME, one.name),
                       *self.annotations(one.event))
            if not one.is_instant:
                ends.append(end)
        while ends:
            self.event(ends.pop(), END, THREADS + pid)


def write(recording, file):
    writer = Writer(recording, file)
    threads = slices.of(recording).by_thread()
    writer.tracks(threads)
    writer.cpus()
    writer.losses()
    for pid, found in threads.items():
        writer.thread(pid, found)
