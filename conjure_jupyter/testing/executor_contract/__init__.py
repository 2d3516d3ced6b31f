"""What every executor must do, as tests that anyone can run over their own.

::

    class TestMyExecutor(ExecutorContract):
        def make_executor(self):
            return MyExecutor(options=...)

The tests are plain functions and need neither pytest nor a plug-in. They look at nothing but the executor's
methods and what ``start`` returned, so it may run anywhere; only the folders that it starts with are made on
this machine. One executor is shared by the tests of a class, each in a folder of its own, and closed by
``teardown_class``. Hooks and switches are in ``suite.Suite``.
"""

from .commands import CommandChecks
from .concurrency import ConcurrencyChecks
from .endings import EndingChecks
from .files import FileChecks
from .folders import FolderChecks
from .lifecycle import LifecycleChecks
from .links import LinkChecks
from .output import OutputChecks
from .place import Place
from .users import UserChecks

__all__ = ["ExecutorContract", "Place"]


class ExecutorContract(
    CommandChecks,
    OutputChecks,
    EndingChecks,
    ConcurrencyChecks,
    FileChecks,
    FolderChecks,
    LinkChecks,
    UserChecks,
    LifecycleChecks,
):
    """The tests; a subclass says how to make an executor."""
