"""pytest_plugin.py - the fixture `guest` for pytest: a guest at its prompt.

    @pytest.mark.guest(smp=4)           fields of Setup, if the usual ones do not fit
    def test_reads(guest):
        guest.request("probe add vfs_read")

Each test has a guest of its own; with a fixture `same_guest` instead, tests share one guest,
which QEMU brings back to its prompt before each of them. The kernel is built before the
first. If a test fails, its report has the end of what the guest printed.
"""

import pytest

from sonde import Guest, build_kernel

SHOWN = 20  # lines of the guest's console


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "guest(**fields): the Setup of the fixture `guest`"
    )


@pytest.fixture(scope="session")
def built_kernel():
    build_kernel()


@pytest.fixture
def guest(request, built_kernel):
    """A guest at its prompt. It ends with the test."""
    marker = request.node.get_closest_marker("guest")
    with Guest(**(marker.kwargs if marker else {})) as started:
        started.wait_prompt()
        request.node.sonde_guest = started
        yield started


@pytest.fixture(scope="session")
def saved_guests(built_kernel):
    """{fields of a Setup: a guest that is kept at its prompt}"""
    guests = {}
    yield guests
    for one in guests.values():
        one.stop()


@pytest.fixture
def same_guest(request, saved_guests):
    """A guest as it is at its prompt. Tests with the same fields share it."""
    marker = request.node.get_closest_marker("guest")
    fields = marker.kwargs if marker else {}
    key = repr(sorted(fields.items()))
    found = saved_guests.get(key)
    if found and not found.ended():
        found.restore()
    else:
        found = saved_guests[key] = Guest(**{**fields, "snapshots": True})
        found.save()
    request.node.sonde_guest = found
    yield found


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    running = getattr(item, "sonde_guest", None)
    if report.when == "call" and report.failed and running:
        report.sections.append(
            ("the guest's console", "\n".join(running.last_lines(SHOWN)))
        )
