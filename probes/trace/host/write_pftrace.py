"""write_pftrace.py - writes a trace for Perfetto: a track for each CPU and each thread.

The track of a CPU shows which thread was seen on it; another track counts the events that
the CPU lost. The track of a thread has slices for functions that returned, and instants
for other hits.

The numbers of the fields are Perfetto's (protos/perfetto/trace).
"""

from . import pages, slices
from .protobuf import content, number

# TracePacket
TIMESTAMP, SEQUENCE, EVENT, SEQUENCE_FLAGS, DESCRIPTOR, PACKET = 8, 10, 11, 13, 60, 1
CLEARED = 1
# TrackDescriptor, and the messages in it
UUID, NAME, PROCESS, THREAD, PARENT, COUNTER = 1, 2, 3, 4, 5, 8
PROCESS_PID, PROCESS_NAME = 1, 6
THREAD_PID, THREAD_TID, THREAD_NAME = 1, 2, 5
# TrackEvent
ANNOTATION, TYPE, TRACK, EVENT_NAME, VALUE = 4, 9, 11, 23, 30
BEGIN, END, INSTANT, COUNT = 1, 2, 3, 4
ANNOTATION_UINT, ANNOTATION_INT, ANNOTATION_STRING, ANNOTATION_NAME = 3, 4, 6, 10

KERNEL = 1  # the process that all threads belong to
CPUS, LOST, THREADS = 1 << 32, 2 << 32, 3 << 32  # first numbers of the kinds of tracks


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
            self.track(
                LOST + cpu,
                number(PARENT, KERNEL),
                content(NAME, f"CPU {cpu}: events lost"),
                content(COUNTER, b""),
            )
        for pid in threads:
            # A thread must not have the number of the process, and not 0: Perfetto takes
            # thread 0 for the idle thread.
            thread = number(THREAD_PID, KERNEL) + number(THREAD_TID, KERNEL + 1 + pid)
            thread += content(THREAD_NAME, f"{self.recording.name_of(pid)}-{pid}")
            self.track(THREADS + pid, content(THREAD, thread))

    def cpus(self):
        for cpu, row in enumerate(slices.running(self.recording)):
            for pid, first, last in row:
                self.event(
                    first,
                    BEGIN,
                    CPUS + cpu,
                    content(EVENT_NAME, f"{self.recording.name_of(pid)}-{pid}"),
                )
                self.event(last, END, CPUS + cpu)

    def losses(self):
        counts = [0] * len(self.recording.pages)
        last = 0
        for event in self.recording.all_events:
            last = event.time
            if event.missed:
                counts[event.cpu] += 1 if event.missed == pages.SOME else event.missed
                self.event(
                    last, COUNT, LOST + event.cpu, number(VALUE, counts[event.cpu])
                )
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
            self.event(
                one.begin,
                kind,
                THREADS + pid,
                content(EVENT_NAME, one.name),
                *self.annotations(one.event),
            )
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
