"""memory.py - reads a guest's memory through QEMU, whether the guest runs or has died."""

import os
import tempfile

FRAME = 4096
GAP = 32 * FRAME  # bytes that are rather read for nothing than by another request
SHM = "/dev/shm"


class Memory:
    """The memory of the guest behind a hang.Qmp. Use with `with`."""

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
        """As the first CPU has it mapped."""
        return self._save("memsave", address - (address >> 63 << 64), size)

    def frames(self, addresses):
        """The frames at these physical addresses, as a dictionary."""
        found = {}
        for run in runs(sorted(addresses)):
            data = memoryview(self.physical(run[0], run[-1] + FRAME - run[0]))
            for address in run:
                at = address - run[0]
                found[address] = bytes(data[at : at + FRAME])
        return found


def runs(addresses):
    """Rising addresses of frames, as lists of those that are near to each other."""
    run = []
    for address in addresses:
        if run and address > run[-1] + GAP:
            yield run
            run = []
        run.append(address)
    if run:
        yield run
