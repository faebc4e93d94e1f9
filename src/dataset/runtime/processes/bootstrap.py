"""Command line that starts another interpreter with the modules path and arguments of this one.

The user's main module is not run again. So a script needs no ``if __name__ == "__main__"``, and notebooks and ``python
-c`` work as well.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dataset.world import subprocess

_CODE = """\
import sys
_, before, module, function, numbers, count, *rest = sys.argv
sys.path[:], sys.argv[:] = rest[:int(count)], rest[int(count):]
descriptors = [int(number) for number in numbers.split(",")]
try:
    import importlib
    for name in before.split(","):
        importlib.import_module(name)
    main = getattr(importlib.import_module(module), function)
except BaseException:
    import pickle, socket, struct, traceback
    text = pickle.dumps((None, traceback.format_exc()))
    socket.socket(fileno=descriptors[0]).sendall(struct.pack("<Q", len(text)) + text)
    sys.exit(1)
main(*descriptors)
"""


def command(module: str, function: str, descriptors: Sequence[int], before: Sequence[str] = ()) -> list[str]:
    """Return the command that imports modules ``before``, then calls ``function`` of ``module`` with ``descriptors``.

    If the module cannot be imported, ``None, traceback`` is sent through the first descriptor in the format of a
    channel.
    """
    paths = [path for path in sys.path if isinstance(path, str)]
    numbers = ",".join(map(str, descriptors))
    return [
        sys.executable,
        *subprocess.interpreter_flags(),
        "-c",
        _CODE,
        ",".join((*before, module)),
        module,
        function,
        numbers,
        str(len(paths)),
        *paths,
        *sys.argv,
    ]
