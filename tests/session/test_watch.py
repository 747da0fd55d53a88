"""test_watch.py - `probe watch`: what is typed, and what is said."""

import re

import tap
from session import ask, at_prompt


def reply_of(guest, command):
    return guest.machine.request(command, 30)


def is_refused(guest, command, name, *texts):
    reply = reply_of(guest, command)
    tap.equal(reply.name, name, f"{command}: {name}")
    missing = [text for text in texts if text not in reply.text]
    if not tap.check(not missing, f"{command}: it says why"):
        tap.note(f"{missing} not in {reply.text}")


def row_of(guest, name):
    """Hits, misses and the rest of the line of @name in `probe list`."""
    found = re.search(rf"^{name} +[0-9a-f]{{16}} w (dr\d) +(\d+) +(\d+)  (.*)$",
                      ask(guest, "probe list"), re.M)
    return (int(found[2]), int(found[3]), found[4]) if found else None


def what_a_watch_says():
    with at_prompt() as guest:
        reply = reply_of(guest, "probe watch jiffies w")
        tap.equal(reply.text, "w1 at jiffies+0x0, w 8, in dr0\n",
                  "its length is the object's")
        ask(guest, "run sleep")
        hits, misses, rest = row_of(guest, "w1")
        tap.check(hits > 0 and misses == 0, "the timer writes")
        tap.check(re.match(r"jiffies\+0x0 w 8 last=tick\+0x\w+ value=0x\w+$", rest),
                  "the list says where, and what")
        tap.note(rest)
        reply = reply_of(guest, "probe watch vfs_read x")
        tap.equal(reply.errno, 0, "an instruction can be watched")
        calls = re.search(r"calls (\d+) of vfs_read", ask(guest, "run vfs"))
        tap.equal(row_of(guest, "w2")[0], int(calls[1]), "hits are calls")
        tap.check("watched    by w2 in dr1: x 1" in ask(guest, "probe explain vfs_read"),
                  "explain tells of it")
        tap.check("verdict    can be watched" in ask(guest, "probe explain jiffies"),
                  "explain tells of data")
        ask(guest, "probe off w1")
        tap.check("[DISABLED]" in row_of(guest, "w1")[2], "it is switched off")
        ask(guest, "probe on w1")
        tap.check("watch.registers 2\n" in ask(guest, "probe stat"), "stat counts registers")
        ask(guest, "probe watch jiffies+4 w 4 upper")
        ask(guest, "probe watch jiffies rw 2")
        is_refused(guest, "probe watch idle_threads w", "EBUSY", "four debug registers",
                   "dr0 has w1", "dr1 has w2", "dr2 has upper", "dr3 has w3")
        ask(guest, "probe del all")
        tap.check("watch.registers 0\n" in ask(guest, "probe stat"), "all are given back")


def what_is_refused():
    with at_prompt() as guest:
        is_refused(guest, "probe watch jiffies r", "EINVAL", "no watchpoint for reads alone")
        is_refused(guest, "probe watch jiffies w 3", "EINVAL", "1, 2, 4 or 8 bytes")
        is_refused(guest, "probe watch jiffies+1 w 2", "EINVAL", "multiple of the length")
        is_refused(guest, "probe watch vfs_read+1 x", "EILSEQ", "no instruction begins")
        is_refused(guest, "probe watch vfs_read x 2", "EINVAL", "its length is 1")
        is_refused(guest, "probe watch exc_int3 x", "EPERM", "before a hit is known")
        is_refused(guest, "probe watch trap_db_handler rw", "EPERM", "hit for ever")
        is_refused(guest, "probe watch no_such_thing w", "ENOENT", "no such symbol")
        is_refused(guest, "probe watch jiffies", "EINVAL", "usage: probe watch")
        is_refused(guest, "probe watch jiffies q", "EINVAL", "usage: probe watch")
        is_refused(guest, "probe watch 0x1000 w 8", "EINVAL", "no address of the kernel")
        tap.check("watch.registers 0\n" in ask(guest, "probe stat"), "nothing was taken")


def tab_completes():
    with at_prompt() as guest:
        ask(guest, "probe watch jiffies w")
        guest.console.send("probe watch jif\t")
        guest.console.expect(b"jiffies", 10)
        guest.console.send(" r\t")
        guest.console.expect(b"jiffies rw", 10)
        tap.check(True, "Tab knows data and kinds")


tap.run(what_a_watch_says, what_is_refused, tab_completes)
