"""memory.py - reads a guest's memory through QEMU. The guest may run or have crashed."""

import os
import tempfile

FRAME = 4096
GAP = 32 * FRAME  # reading so many unneeded bytes takes less time than another request
SHM = "/dev/shm"


class Memory:
    """The memory of the guest of a hang.Qmp. To be used with `with`."""

    def __init__(self, qmp):
        self.qmp = qmp
        self.folder = tempfile.TemporaryDirectory(dir=SHM if os.path.isdir(SHM) else None)
        self.path = os.path.join(self.folder.name, "memory")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.folder.cleanup()

    def _save(self, command, address, size):
        if not size:
            return b""
        if self.qmp.execute(command, val=address, size=size, filename=self.path) is None:
            raise OSError(f"QEMU cannot read {size} bytes of the guest at {address:#x}")
        with open(self.path, "rb") as file:
            return file.read()

    def physical(self, address, size):
        return self._save("pmemsave", address, size)

    def virtual(self, address, size):
        """Read memory at a virtual address, as the first CPU maps it."""
        return self._save("memsave", address - (address >> 63 << 64), size)

    def frames(self, addresses):
        """Return the frames at these physical addresses, as {address: bytes}."""
        found = {}
        for run in runs(sorted(addresses)):
            data = memoryview(self.physical(run[0], run[-1] + FRAME - run[0]))
            for address in run:
                at = address - run[0]
                found[address] = bytes(data[at : at + FRAME])
        return found


def runs(addresses):
    """Split rising addresses of frames into lists of addresses that are close."""
    run = []
    for address in addresses:
        if run and address > run[-1] + GAP:
            yield run
            run = []
        run.append(address)
    if run:
        yield run
