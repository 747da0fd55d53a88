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
import functools
import hashlib
import hmac
import io
import json
import multiprocessing
import os
import re
import secrets
import signal
import stat
import sys
import tempfile
import time
import zipfile

from docs.labs.host import confine
from docs.labs.host import grade
from docs.labs.host import labs
from sonde.building import HostError
from sonde.errors import SondeError, read_whole, writing
from sonde.guest import Guest, GuestError, Setup
from sonde.options import UsageError, checked, folder_to_make, output_file

AIM_BYTES = 8 * 10**9
ID = re.compile(r"[A-Za-z0-9][\w.-]{0,60}")
HEAD = re.compile(
    r"(student|user|login)s?|((student|user|login|first|last)[ ._-]?)?(id|name|number)s?",
    re.I,
)
BOOT_SECONDS = 120
UNKNOWN = "?"  # written instead of points if a grading failed
ZIP_MAX = 2**26  # bytes of a zip file
ZIPS_DEEP = 2  # a zip file in a zip file is unpacked, too
SHOWN = 5  # names of files that are not taken
PACKED = re.compile(r"(\.(zip|tar|t?gz|xz|bz2|7z|rar))+$", re.I)
LIKE_A_FILE_OF_A_LAB = re.compile(r"\.(c|asm)\b(?!.*(\.[oh]|~)$)|\bkeys\b[^/]*$", re.I)


def read_roster(path, handed_in=()):
    """Return the students' ids: the first column of a CSV file, with commas or semicolons.
    The first row is a head, if it has a word such as `id` or `name`; but not if it names a
    student who has handed in.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = read_whole(file)
        first = text.partition("\n")[0]
        mark = ";" if ";" in first and "," not in first else ","
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=mark) if row]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8") from None
    except csv.Error as error:
        raise UsageError(f"{path}: no CSV file: {error}") from None
    ids = [row[0].strip() for row in rows]
    if ids and ids[0].lower() not in handed_in and is_head(rows[0]):
        del ids[0]
    for name in ids:
        if not ID.fullmatch(name):
            raise UsageError(
                f"{path}: {name!r} is no id: it begins with a letter or digit, "
                "and has 61 of these and of .-_ at most"
                + "; a head has a word such as id or name" * (name == ids[0])
            )
        if [other.lower() for other in ids].count(name.lower()) > 1:
            raise UsageError(f"{path}: {name!r} stands there twice")
    if not ids:
        raise UsageError(f"{path}: no students; behind a head, the first column has ids")
    return ids


def is_head(row):
    return any(HEAD.fullmatch(word.strip()) for word in row)


def secret_of(roster, is_used=False):
    """Return the secret in the file beside a roster. Make one if there is none.
    @is_used: students have what was made with it, so another one would not do
    """
    path = roster + ".secret"
    if not os.path.exists(path):
        if is_used:
            raise UsageError(
                f"{path} is not there: it was made when the class was handed out, perhaps "
                "beside a roster of another name; without it, right keys get no points"
            )
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
            "w",
            encoding="ascii",
        ) as file:
            file.write(secrets.token_hex(32) + "\n")
    with open(path, "rb") as file:
        secret = file.read().strip()
    if not secret:  # a disk that was full; anyone could tell the seeds of students
        raise UsageError(f"{path} is empty; remove it, and another one is made")
    return secret


def seed_of(secret, student, lab, what):
    """Return a student's seed for a lab. @what: "task" or "cases". An id keeps its seed if
    another export of the roster writes it in capital letters.
    """
    text = f"{what} {lab} {student.lower()}".encode()
    return (
        int.from_bytes(hmac.new(secret, text, hashlib.sha256).digest()[:4], "big")
        % 2**31
    )


# ---- handing out


def hand_out(roster, students, folder):
    secret = secret_of(roster)
    os.makedirs(folder, exist_ok=True)
    for student in students:
        path = os.path.join(folder, student + ".zip")
        with tempfile.TemporaryDirectory() as scratch, writing(path), zipfile.ZipFile(
            path, "w"
        ) as packed:
            for lab in labs.NUMBERS:
                start = os.path.join(scratch, lab)
                grade.begin(lab, start, seed_of(secret, student, lab, "task"))
                for file in sorted(os.listdir(start)):
                    packed.write(os.path.join(start, file), f"{lab}/{file}")
    print(
        f"{len(students)} students: {folder}/ID.zip, to unpack in ~/sonde-labs; "
        f"keep {roster}.secret"
    )
    return True


# ---- collecting


class NotTaken(Exception):
    """A student's file cannot be taken, for example a link. The text says why."""


def printable(text):
    """Return a text in which each character that cannot be printed is an escape: students
    choose the names of files, and what their programs print.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def bytes_in_folder(folder, *names, most=grade.FILE_MAX):
    """Return the bytes of a regular file, @most + 1 at most. Raises NotTaken for a link and
    for a file of another kind.
    """
    path = os.path.join(folder, *names)
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
            return opened.read(most + 1)
    finally:
        os.close(file)


@contextlib.contextmanager
def reads_zip(name):
    """Turn each exception into NotTaken: a zip file may be anything."""
    try:
        yield
    except Exception as error:
        raise NotTaken(
            f"{name} cannot be read: {error or type(error).__name__}"
        ) from None


def in_folder(folder, entry):
    """Yield the files of a folder as files_of() does."""
    if os.path.islink(os.path.join(folder, entry)):
        yield [entry], NotTaken(f"{entry} is a link")
        return
    for path, folders, files in os.walk(os.path.join(folder, entry)):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(path, name))]
        for name in sorted(files) + links:
            parts = os.path.relpath(os.path.join(path, name), folder).split(os.sep)
            yield parts, (
                NotTaken(f"{'/'.join(parts)} is a link")
                if name in links
                else functools.partial(bytes_in_folder, folder, *parts)
            )


def in_zip(data, where):
    """Yield the files of a zip file as files_of() does. @where: the parts of its name"""

    def bytes_of(row, most=grade.FILE_MAX):  # a name may have two rows
        with reads_zip("/".join([*where, row.filename])):
            with zipfile.ZipFile(io.BytesIO(data)) as packed, packed.open(row) as file:
                return file.read(most + 1)

    with reads_zip("/".join(where)):
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            rows = packed.infolist()
        if any(row.flag_bits & 1 for row in rows):
            raise ValueError("it has a password")
    for row in rows:
        parts = [*where, *row.filename.replace("\\", "/").split("/")]
        if stat.S_ISLNK(row.external_attr >> 16):
            yield parts, NotTaken(f"{'/'.join(parts)} is a link")
        elif not row.is_dir():
            yield parts, functools.partial(bytes_of, row)


def files_of(folder, entry):
    """Return an iterator over all files that a student has handed in: (parts of the name,
    function that returns the bytes, or NotTaken).
    """
    if os.path.isdir(os.path.join(folder, entry)):
        files = in_folder(folder, entry)
    else:
        files = [([entry], functools.partial(bytes_in_folder, folder, entry))]
    for _ in range(ZIPS_DEEP):
        files = unpacked(files)
    return files


def unpacked(files):
    """Yield files, and in place of each zip file the files in it."""
    for parts, read in files:
        is_packed = parts[-1].lower().endswith(".zip") and "__MACOSX" not in parts
        if isinstance(read, NotTaken) or not is_packed:
            yield parts, read
            continue
        try:
            data = read(most=ZIP_MAX)
            if len(data) > ZIP_MAX:
                raise NotTaken(f"{'/'.join(parts)} has more than {ZIP_MAX} bytes")
            yield from in_zip(data, parts)
        except NotTaken as error:
            yield parts, error


def files_of_labs():
    """Return {file name in small letters: (lab, file name)}. No two labs have a file of the
    same name.
    """
    return {
        file.lower(): (lab, file) for lab in labs.NUMBERS for file in labs.handed_in(lab)
    }


def owner(entry):
    """Return whose hand-in an entry of the folder is: eve/, Eve/ or eve.zip is of eve."""
    return re.sub(PACKED, "", entry.lower())


def some_of(names):
    return ", ".join(names[:SHOWN]) + ", ..." * (len(names) > SHOWN)


def find(folder, student):
    """Look through what a student has handed in, in whatever folders and zip files it lies.
    Return ({(lab, file): function that returns the bytes}, sentences about what cannot be
    taken).
    """
    entries = sorted(e for e in os.listdir(folder) if owner(e) == student.lower())
    found, said, known, entry_of = {}, [], files_of_labs(), {}
    archives, others = [], []
    if len(entries) > 1:
        which = "of each lab, the first with a file of it is used"
        said.append(f"handed in more than once: {', '.join(entries)}; {which}")
    for parts, read in (row for entry in entries for row in files_of(folder, entry)):
        name, path = parts[-1], "/".join(parts)
        place = known.get(name.lower())
        if isinstance(read, NotTaken):
            said.append(str(read))
        elif "__MACOSX" in parts or name.startswith("."):
            continue
        elif ".." in parts:
            said.append(f"not taken, since it leads elsewhere: {path}")
        elif not place:
            (archives if PACKED.search(name) else others).append(path)
        elif entry_of.setdefault(place[0], parts[0]) != parts[0]:
            continue  # files of two hand-ins of a lab may not fit together
        elif place not in found:
            found[place] = read, parts
        else:
            used = "/".join(found[place][1])
            said.append(
                f"{place[1]} is there twice: the first, {used}, is used, not {path}"
            )
    if found:
        others = [path for path in others if LIKE_A_FILE_OF_A_LAB.search(path)]
    if archives:
        why = "only zip files are, and zip files in them"
        said.append(f"not unpacked, since {why}: {some_of(archives)}")
    if others:
        said.append(
            f"not taken, since no file of a lab has such a name: {some_of(others)}"
        )
    elif entries and not found and not said:
        said.append("nothing is taken: there is no file")
    return {place: read for place, (read, _) in found.items()}, list(map(printable, said))


def not_on_roster(folder, students):
    """Yield sentences about entries of the folder that belong to no student."""
    known = {student.lower() for student in students}
    for entry in sorted(os.listdir(folder)):
        if owner(entry) not in known and not entry.startswith((".", "__MACOSX")):
            yield printable(f"{entry}: not taken: the roster has no {owner(entry)}")


def take(folder, student, lab, target):
    """Copy the files that a student has handed in for a lab to @target. Return False if
    there is none. Raises NotTaken.
    """
    there = find(folder, student)[0]
    taken = [file for file in labs.handed_in(lab) if (lab, file) in there]
    os.makedirs(target)
    for file in taken:
        data = there[lab, file]()
        with open(os.path.join(target, file), "wb") as copy:
            copy.write(data)
    return bool(taken)


def without_names(folder):
    """Return a hash of the files in a folder that is the same if only names, blanks and
    comments differ.
    """
    digest = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", file.read(), flags=re.S)
        numbers = {}
        for word in re.findall(r"[A-Za-z_]\w*|\d\w*|\S", text):
            is_name = word[0].isalpha() or word[0] == "_"
            word = f"name {numbers.setdefault(word, len(numbers))}" if is_name else word
            digest.update(word.encode() + b"\0")
    return digest.hexdigest()


def report_of(shop, folder, student, target, seed):
    """Return what a student gets for a lab, as JSON has it; None: no file was handed in.
    Raises NotTaken, HostError.
    """
    if not take(folder, student, shop.lab, target):
        return None
    shown, verdicts = io.StringIO(), grade.grade(shop, target, seed)
    with contextlib.redirect_stdout(shown):
        grade.show(
            verdicts,
            labs.NUMBERS[shop.lab],
            seed,
            False,
            "".join(shop.warned),
            student,
        )
    why = next((v.why for v in verdicts if v.why), "").split("\n")
    told = (line for line in why if " error: " in line or "undefined ref" in line)
    why = next(told, " ".join(why[:2]).strip())
    return {
        "lab": shop.lab,
        "seed": seed,
        "score": sum(v.points for v in verdicts),
        "why": printable(why),
        "lines": [verdict.as_json() for verdict in verdicts],
        "text": "\n".join(map(printable, shown.getvalue().expandtabs().split("\n"))),
        "code": without_names(target),
    }


def grade_some(lab, tree, scratch, folder, seeds):
    """Grade a lab for several students. Return ({student: report}, sentences about
    students without points). Runs in a process of its own. A report is None if no file was
    taken, and UNKNOWN if the grading failed.
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
                points[student] = report_of(shop, folder, student, target, seed)
            except NotTaken as error:
                points[student] = None
                said.append(printable(f"{student}, {lab}: not taken: {error}"))
            except Exception as error:  # the others in this process still get theirs
                is_bug = not isinstance(error, (SondeError, OSError))
                why = f"{type(error).__name__}: {error}" if is_bug else error
                points[student] = UNKNOWN
                said.append(printable(f"{student}, {lab}: not graded: {why}"))
    return points, said


def chunks(students, count):
    return [part for part in (students[i::count] for i in range(count)) if part]


def tell(line):
    print("sonde: class: " + line, file=sys.stderr)


def look_through(folder, students):
    """Tell what cannot be taken of all hand-ins. Return the sentences: {student: list}; under
    None are those about entries of no student. Return also the labs of what can be taken.
    """
    found = {student: find(folder, student) for student in students}
    there = {lab for places, _ in found.values() for lab, _ in places}
    told = {student: said for student, (_, said) in found.items()}
    told[None] = list(not_on_roster(folder, students))
    for student, sentences in told.items():
        for sentence in sentences:
            tell(f"{student}: {sentence}" if student else sentence)
    return told, there


def leave(_number, _frame):
    """End this process and all that it has started."""
    confine.end_all(())
    os._exit(1)


def die_with_command():
    """Let signals, and the end of the command, end a process of the pool. An exception would
    only end its task. What the command ignores, as nohup asks, this process ignores, too.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)
    signal.signal(signal.SIGUSR1, leave)
    confine.libc.prctl(confine.PR_SET_PDEATHSIG, signal.SIGUSR1)


@contextlib.contextmanager
def pool_of(jobs):
    """Return a pool of processes. If the work with it fails or is interrupted, all of them
    end at once, also the programs of one that was killed. A pool waits for its tasks.
    """
    confine.adopt_orphans()
    before = confine.children()
    try:
        with concurrent.futures.ProcessPoolExecutor(
            jobs, initializer=die_with_command
        ) as pool:
            try:
                yield pool
            except BaseException:
                for process in multiprocessing.active_children():
                    process.kill()
                raise
    finally:
        confine.end_all(before)


def collect(students, options):
    folder, jobs = options.collect, options.jobs
    output = options.output or "grades.csv"
    begun = time.monotonic()
    reports = {student: {} for student in students}
    told, there = look_through(folder, students)
    secret = secret_of(options.roster, any(map(grade.has_seeds, there)))
    with open(output, "a", encoding="utf-8"):
        pass  # if the file cannot be written, fail now and not after all the gradings
    with tempfile.TemporaryDirectory() as scratch, pool_of(jobs) as pool:
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
                student, _, sentence = line.partition(", ")
                tell(line)
                told[student].append(sentence)
            for student, report in some.items():
                reports[student][done[task]] = report
    write_grades(reports, told, output)
    write_reports(reports, told, os.path.splitext(output)[0] + "-reports")
    same = list(equal_ones(reports))
    for sentence in same:
        tell(sentence)
    if options.json:
        shown = [in_json(student, reports[student], told) for student in students]
        print(json.dumps({"students": shown, "not_on_roster": told[None], "same": same}))
    else:
        print(f"{len(students)} students in {time.monotonic() - begun:.0f} s: {output}")
    return not any(told.values())


def equal_ones(reports):
    """Yield sentences about students who have handed in the same but for names."""
    for lab in labs.NUMBERS:
        same = {}
        for student, by_lab in reports.items():
            if isinstance(by_lab[lab], dict) and lab != "bomb" and by_lab[lab]["score"]:
                same.setdefault(by_lab[lab]["code"], []).append(student)
        for some in same.values():
            if len(some) > 1:
                yield f"{lab}: the same but for names: {', '.join(some)}"


def sentences_about(student, by_lab, told):
    """Return what a student's report says besides the points."""
    is_empty = not any(by_lab.values()) and not told[student]
    return ["nothing was handed in"] if is_empty else told[student]


def in_json(student, by_lab, told):
    """Return what a student gets. A lab whose grading has failed has no score."""
    shown = []
    for lab in labs.NUMBERS:
        report = by_lab[lab]
        if isinstance(report, dict):
            shown.append({k: v for k, v in report.items() if k not in ("text", "code")})
        elif report == UNKNOWN:
            shown.append({"lab": lab, "score": None})
    score = sum(report["score"] or 0 for report in shown)
    return {"id": student, "sum": score, "labs": shown, "not_taken": told[student]}


def write_reports(reports, told, folder):
    """Write FOLDER/ID.txt and FOLDER/ID.json for each student."""
    os.makedirs(folder, exist_ok=True)
    for student, by_lab in reports.items():
        known = [by_lab[lab] for lab in labs.NUMBERS if isinstance(by_lab[lab], dict)]
        with open(os.path.join(folder, student + ".txt"), "w", encoding="utf-8") as file:
            for sentence in sentences_about(student, by_lab, told):
                file.write(sentence + "\n\n")
            for report in known:
                file.write(f"Lab {labs.NUMBERS[report['lab']]} {report['lab']}\n")
                file.write(report["text"] + "\n")
        with open(os.path.join(folder, student + ".json"), "w", encoding="utf-8") as file:
            json.dump(in_json(student, by_lab, told), file, indent=1)


def result_of(task, lab):
    try:
        return task.result()
    except concurrent.futures.process.BrokenProcessPool:
        raise HostError(
            f"class: a process that was grading {lab} was ended by something "
            "else; if memory has run out, try --jobs 1"
        ) from None


def points_of(report):
    return report["score"] if isinstance(report, dict) else report


def write_grades(reports, told, output):
    """Write a row for each student. A field is empty if no file was taken, and UNKNOWN if
    the grading failed. The last field says why a 0 is a 0, and what was not taken.
    """
    with writing(output), open(output, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["id", *labs.NUMBERS, "sum", "why"])
        for student, by_lab in reports.items():
            numbers = [points_of(by_lab[lab]) for lab in labs.NUMBERS]
            fields = ["" if number is None else number for number in numbers]
            known = [number for number in numbers if number not in (None, UNKNOWN)]
            why = [
                f"{lab}: {by_lab[lab]['why']}"
                for lab in labs.NUMBERS
                if points_of(by_lab[lab]) == 0
            ] + sentences_about(student, by_lab, told)
            rows.writerow([student, *fields, sum(known), "; ".join(why)])


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
    return True


def work_of(options):
    """Return the function that does the work of ./sonde class, and returns whether all of it
    is done. What the user has given wrongly is refused before.
    """
    if options.guests:
        return functools.partial(measure, options.guests, options.memory)
    if not options.roster:
        raise UsageError("class: a ROSTER, or --guests N")
    if not options.collect:
        folder = checked(folder_to_make, options.output or "handed-out")
        students = read_roster(options.roster)
        return functools.partial(hand_out, options.roster, students, folder)
    if not os.path.isdir(options.collect):
        raise UsageError(f"there is no folder {options.collect}")
    checked(output_file, options.output or "grades.csv")
    entries = os.listdir(options.collect)
    students = read_roster(options.roster, set(map(owner, entries)))
    return functools.partial(collect, students, options)
