"""classroom.py - ./sonde class: makes folders with a seed for each student, gives points
for the files that students hand in, and measures how much memory their guests take.

    hand out    ROSTER -> FOLDER/ID.zip, with a folder for each lab
    collect     FOLDER/ID/LAB/file or FOLDER/ID.zip -> grades.csv

A student's seed is a hash of the student's id, the lab and a secret that only the teacher
has. If the task of a lab depends on the seed, the student's folder has it. The cases of a
grading use another seed, which no student can know.
"""

import concurrent.futures.process
import contextlib
import csv
import hashlib
import hmac
import os
import re
import secrets
import stat
import sys
import tempfile
import time
import zipfile

from docs.labs.host import grade
from docs.labs.host import labs
from sonde.building import HostError
from sonde.guest import Guest, GuestError, Setup
from sonde.options import UsageError

AIM_BYTES = 8 * 10**9
ID = re.compile(r"[A-Za-z0-9][\w.-]{0,60}")
BOOT_SECONDS = 120
UNKNOWN = "?"  # written instead of points if a grading failed


def read_roster(path):
    """Return the students' ids: the first column of a CSV file, without its first row."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8") from None
    except csv.Error as error:
        raise UsageError(f"{path}: no CSV file: {error}") from None
    ids = [row[0].strip() for row in rows[1:]]
    for name in ids:
        if not ID.fullmatch(name):
            raise UsageError(
                f"{path}: {name!r} is no id: it begins with a letter or digit, "
                "and has 61 of these and of .-_ at most"
            )
        if ids.count(name) > 1:
            raise UsageError(f"{path}: {name!r} stands there twice")
    if not ids:
        raise UsageError(f"{path}: no students; behind a head, the first column has ids")
    return ids


def secret_of(roster):
    """Return the secret in the file beside a roster. Make one if there is none."""
    path = roster + ".secret"
    if not os.path.exists(path):
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
            "w",
            encoding="ascii",
        ) as file:
            file.write(secrets.token_hex(32) + "\n")
    with open(path, encoding="ascii") as file:
        return file.read().strip().encode()


def seed_of(secret, student, lab, what):
    """Return a student's seed for a lab. @what: "task" or "cases"."""
    text = f"{what} {lab} {student}".encode()
    return (
        int.from_bytes(hmac.new(secret, text, hashlib.sha256).digest()[:4], "big")
        % 2**31
    )


# ---- handing out


def hand_out(roster, folder):
    students, secret = read_roster(roster), secret_of(roster)
    os.makedirs(folder, exist_ok=True)
    for student in students:
        with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(
            os.path.join(folder, student + ".zip"), "w"
        ) as packed:
            for lab in labs.NUMBERS:
                path = os.path.join(scratch, lab)
                grade.begin(lab, path, seed_of(secret, student, lab, "task"))
                for file in sorted(os.listdir(path)):
                    packed.write(os.path.join(path, file), f"{lab}/{file}")
    print(
        f"{len(students)} students: {folder}/ID.zip, to unpack in ~/sonde-labs; "
        f"keep {roster}.secret"
    )


# ---- collecting


class NotTaken(Exception):
    """A student's file cannot be taken, for example a link. The text says why."""


def bytes_in_folder(folder, *names):
    """Return the bytes of a regular file; None: there is none. Raises NotTaken for a link
    and for a file of another kind.
    """
    path = os.path.join(folder, *names)
    if not os.path.lexists(path):
        return None
    if os.path.realpath(path) != os.path.join(os.path.realpath(folder), *names):
        raise NotTaken(f"{path} is a link, or stands behind one")
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise NotTaken(f"{path}: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise NotTaken(f"{path} is no regular file")
        with open(file, "rb", closefd=False) as opened:
            return opened.read(grade.FILE_MAX + 1)
    finally:
        os.close(file)


def bytes_in_zip(path, name):
    """Return the bytes of a file in a zip file; None: there is none. Raises NotTaken."""
    if not os.path.lexists(path):
        return None
    try:
        with zipfile.ZipFile(path) as packed, packed.open(name) as opened:
            return opened.read(grade.FILE_MAX + 1)
    except KeyError:
        return None
    except Exception as error:  # the file may be anything
        raise NotTaken(f"{path}: {name}: {error or type(error).__name__}") from None


def take(folder, student, lab, target):
    """Copy the files that a student has handed in for a lab to @target. Return False if
    there is none. Raises NotTaken.
    """
    packed, found = os.path.join(folder, student + ".zip"), False
    os.makedirs(target)
    for file in labs.handed_in(lab):
        data = bytes_in_folder(folder, student, lab, file)
        if data is None:
            data = bytes_in_zip(packed, f"{lab}/{file}")
        if data is not None:
            found = True
            with open(os.path.join(target, file), "wb") as copy:
                copy.write(data)
    return found


def points_of(shop, folder, student, target, seed):
    """Return a student's points; None: no file was handed in. NotTaken, HostError."""
    if not take(folder, student, shop.lab, target):
        return None
    return sum(v.points for v in grade.grade(shop, target, seed))


def grade_some(lab, tree, scratch, folder, seeds):
    """Grade a lab for several students. Return ({student: points}, sentences about
    students without points). Runs in a process of its own.
    @seeds: {student: (seed of the task, seed of the cases)}
    """
    points, said = {}, []
    built = os.path.join(scratch, "built")
    with contextlib.closing(grade.workshop_of(lab, tree, built)) as shop:
        shop.build_ours()
        for student, (task, cases) in seeds.items():
            target = os.path.join(scratch, student)
            seed = task if grade.has_seeds(lab) else cases
            try:
                points[student] = points_of(shop, folder, student, target, seed)
            except NotTaken as error:
                points[student] = None
                said.append(f"{student}, {lab}: not taken: {error}")
            except (HostError, OSError) as error:
                points[student] = UNKNOWN
                said.append(f"{student}, {lab}: not graded: {error}")
    return points, said


def chunks(students, count):
    return [part for part in (students[i::count] for i in range(count)) if part]


def collect(roster, folder, jobs, output):
    if not os.path.isdir(folder):
        raise UsageError(f"there is no {folder}")
    students, secret = read_roster(roster), secret_of(roster)
    begun = time.monotonic()
    points = {student: {} for student in students}
    with open(output, "a", encoding="utf-8"):
        pass  # if the file cannot be written, fail now and not after all the gradings
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ProcessPoolExecutor(
        jobs
    ) as pool:
        tree = grade.committed(os.path.join(scratch, "tree"))
        done = {}
        for lab in labs.NUMBERS:
            for i, part in enumerate(chunks(students, jobs)):
                seeds = {
                    student: (
                        seed_of(secret, student, lab, "task"),
                        seed_of(secret, student, lab, "cases"),
                    )
                    for student in part
                }
                place = os.path.join(scratch, f"{lab}-{i}")
                done[pool.submit(grade_some, lab, tree, place, folder, seeds)] = lab
        for task in concurrent.futures.as_completed(done):
            some, said = result_of(task, done[task])
            for line in said:
                print("sonde: class: " + line, file=sys.stderr)
            for student, number in some.items():
                points[student][done[task]] = number
    write_grades(points, output)
    print(f"{len(students)} students in {time.monotonic() - begun:.0f} s: {output}")
    return not any(UNKNOWN in row.values() for row in points.values())


def result_of(task, lab):
    try:
        return task.result()
    except concurrent.futures.process.BrokenProcessPool:
        raise HostError(
            f"class: a process that was grading {lab} was ended by something "
            "else; if memory has run out, try --jobs 1"
        ) from None


def write_grades(points, output):
    """Write a row for each student. A field is empty if no file was taken, and UNKNOWN if
    the grading failed.
    """
    with open(output, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["id", *labs.NUMBERS, "sum"])
        for student, by_lab in points.items():
            numbers = [by_lab[lab] for lab in labs.NUMBERS]
            fields = ["" if number is None else number for number in numbers]
            known = [number for number in numbers if number not in (None, UNKNOWN)]
            rows.writerow([student, *fields, sum(known)])


# ---- memory


def memory_of(guest):
    """Return the bytes of the host's memory that a guest takes. Memory that several
    guests share is divided among them.
    """
    with open(f"/proc/{guest.process.pid}/smaps_rollup", encoding="ascii") as file:
        return 1024 * int(re.search(r"^Pss: +(\d+)", file.read(), re.M)[1])


def measure(count, memory):
    """Start @count guests, let each one work, and print the most memory that they take."""
    peak, guests = 0, []
    try:
        for _ in range(count):
            guests.append(Guest(Setup(smp=2, memory=memory, append="quiet")))
            guests[-1].wait_prompt(BOOT_SECONDS)
            guests[-1].machine.request("run vfs", BOOT_SECONDS)
            peak = max(peak, sum(map(memory_of, guests)))
    except (GuestError, TimeoutError) as error:
        raise HostError(f"class: guest {len(guests)} of {count}: {error}") from None
    finally:
        for guest in guests:
            guest.stop()
    each = f"{peak / count / 1e6:.0f} MB each (aim for 30: {AIM_BYTES / 1e9:.0f} GB)"
    print(f"{count} guests of {memory}: at most {peak / 1e6:.0f} MB together, {each}")


def command(options):
    """Run ./sonde class. Return whether all work was done."""
    done = True
    if options.guests:
        measure(options.guests, options.memory)
    elif not options.roster:
        raise UsageError("class: a ROSTER, or --guests N")
    elif options.collect:
        done = collect(
            options.roster, options.collect, options.jobs, options.output or "grades.csv"
        )
    else:
        hand_out(options.roster, options.output or "handed-out")
    sys.stdout.flush()
    return done
