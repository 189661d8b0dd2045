"""Probes for tests that must not be collected ahead of an evaluation; loaded as `slop_code_import_probes`.

They are on while a template loads plugins, conftests and test modules. What this code does then, each evaluation would
do anew in a cold judge. It is repeatable if it only computes and reads files of the tests and of installed packages.
Anything else gives a reason: reading clocks, random numbers, process ids or the submission's folders, changing files,
starting threads or processes, opening sockets, and whatever a probe cannot see through, such as calls of C libraries.

Calls are attributed to the code that makes them: the innermost frame that is neither of the standard library nor of
the test tools. What these do by themselves is the same in every evaluation, or is set up again in each judge.
"""

from __future__ import annotations

import _random
import _thread
import datetime
import importlib
import os
import random
import resource
import sys
import time
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import FrameType

TRUSTED = ("__main__", "pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "pytest_timeout",
           "pytest_jsonreport", "pytest_metadata", "ctrf")  # fmt: skip
"""Packages and modules whose calls are their own, unless others call them; others count as the tests."""
JUDGE = "slop_code_"
"""Modules whose calls are always their own: their audit hooks look at files that others load."""

CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime", "localtime", "gmtime",
          "ctime", "asctime", "strftime")  # fmt: skip
IDENTITIES = ("getpid", "getppid", "getpgid", "getpgrp", "getsid", "getuid", "geteuid", "getgid", "getegid",
              "getgroups", "getresuid", "getresgid", "getlogin")  # fmt: skip
MACHINE = ("getloadavg", "times", "sched_getaffinity", "get_terminal_size")
ATTRIBUTES = ("umask", "nice", "setpriority", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "setsid",
              "setpgid", "setpgrp", "register_at_fork")  # fmt: skip
"""The boxes of an evaluation would inherit them, and the submission with them; what is registered for a fork would run
in processes that have more rights than a judge."""
SIGNALS = ("pthread_sigmask", "set_wakeup_fd")
THREADS = ("start_new_thread", "start_joinable_thread")
STATS = ("stat", "lstat", "access", "readlink", "statvfs")
READS = ("open", "os.listdir", "os.scandir", "os.getxattr", "os.listxattr")
STARTS = (
    "os.fork",
    "os.forkpty",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "subprocess.Popen",
    "pty.spawn",
)
CHANGES = ("os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.truncate", "os.utime",
           "os.chmod", "os.chown", "os.setxattr", "os.removexattr", "os.mkfifo")  # fmt: skip
ACTIONS = {
    **dict.fromkeys(STARTS, "started a process"),
    **dict.fromkeys(CHANGES, "changed files"),
    "os.chdir": "changed the working directory",
    "os.kill": "sent a signal",
    "mmap.__new__": "mapped memory, which processes may share",
    "ctypes.dlopen": "loaded a C library",
    "ctypes.dlsym": "called a C library",
    "sqlite3.connect": "opened a database",
    "resource.setrlimit": "changed a limit of the process",
    "resource.prlimit": "changed a limit of the process",
    "sys.setprofile": "set a profile function",
}
PREFIXES = {"socket.": "used a socket", "shutil.": "changed files", "tempfile.": "made a temporary file"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
DEVICES = ("/dev/null", "/dev/zero")
SHARED = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc")
"""Folders that are the same in the box of a template and in that of a judge, but for the files of `DIFFERENT`."""
SYSTEM = ("/proc", "/sys", "/dev")
DIFFERENT = ("/etc/resolv.conf",)

LIBRARY, IMPORTER, OWN, OTHER = range(4)
"""Kinds of code: the standard library and trusted packages, Python's importer, the judge's modules, all else."""


class Probes:
    """`settings` are those of the judge. `private` has folders whose content differs from evaluation to evaluation."""

    def __init__(self, settings: Mapping[str, Any], private: Iterable[str]) -> None:
        tests: str = settings["tests"]
        self.tests = os.path.realpath(tests)
        self.launcher: str | None = settings.get("launcher") or None
        self.private = _forms(private)
        self.readable = _forms([tests, sys.prefix, sys.base_prefix, *sys.path])
        self.libraries = tuple(f"{path}/" for path in _forms([os.path.dirname(os.__file__)]))
        self.reasons: dict[str, None] = {}
        self.active = False
        self.busy = False
        self.kinds: dict[str, int] = {}
        self.functions = _functions(time, [*CLOCKS, *(f"{name}_ns" for name in CLOCKS)], "read the clock")
        self.functions |= _functions(os, IDENTITIES, "read an id of the process or the user")
        self.functions |= _functions(os, MACHINE, "read the state of the machine")
        self.functions |= _functions(_thread, ("get_native_id",), "read an id of the process or the user")
        for module, names in ((os, ATTRIBUTES), (importlib.import_module("_signal"), SIGNALS)):
            self.functions |= _functions(module, names, "changed an attribute of the process")
        self.functions |= _functions(resource, ("getrlimit", "getrusage"), "read limits or usage of the process")
        self.functions |= _functions(_thread, THREADS, "started a thread")
        self.functions |= _functions(os, ("urandom", "getrandom"), "read random numbers")
        self.originals: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in STATS}
        self.replaced: dict[str, Callable[..., Any]] = {}

    def start(self) -> None:
        self.active = True
        sys.addaudithook(self.hook)
        for name, original in self.originals.items():
            self.replaced[name] = self.watching(name, original)
            self.replace(original, self.replaced[name], name)
        sys.setprofile(self.profile)

    def replace(self, old: Callable[..., Any], new: Callable[..., Any], name: str) -> None:
        setattr(os, name, new)
        for functions in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            if old in functions:
                functions.remove(old)
                functions.add(new)

    def stop(self) -> list[str]:
        if sys.getprofile() != self.profile:
            self.reasons["a test set a profile function before the first test"] = None
        self.active = False
        sys.setprofile(None)
        for name, original in self.originals.items():
            replaced = self.replaced[name]
            if getattr(os, name) is not replaced:
                self.reasons[f"os.{name} was replaced before the first test"] = None
            else:
                self.replace(replaced, original, name)
        return list(self.reasons)

    def watching(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def function(path: Any, *args: Any, **options: Any) -> Any:
            if self.active and not self.busy and (file := self.caller(sys._getframe(1))) and self.is_private(path, 1):
                self.add(file, f"looked at {os.fsdecode(path)} (os.{name})")
            return original(path, *args, **options)

        function.__name__, function.__qualname__, function.__doc__ = name, name, original.__doc__
        return function

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active or self.busy:
            return
        if event in READS:
            action = self.read(event, args)
        else:
            action = ACTIONS.get(event) or next((PREFIXES[key] for key in PREFIXES if event.startswith(key)), None)
            if action == "changed files" and args and "__pycache__" in str(args[0]):
                return
        if action and (file := self.caller(sys._getframe(1))):
            self.add(file, action if event in READS else f"{action} ({event})")

    def read(self, event: str, args: tuple[Any, ...]) -> str | None:
        path = "." if args[0] is None else args[0]
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        name = os.fsdecode(path)
        if event == "open" and isinstance(args[2], int) and args[2] & WRITING:
            # Python and pytest write bytecode beside modules.
            return None if name in DEVICES or "__pycache__" in name else f"wrote to {name}"
        return f"read {name}" if self.is_private(path) else None

    def profile(self, frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call" or self.busy or not isinstance(function, BuiltinFunctionType):
            return
        if (action := self.functions.get(function) or _hidden_state(frame, function)) and (file := self.caller(frame)):
            self.add(file, f"{action} ({function.__name__})")

    def is_private(self, path: Any, above: int = 0) -> bool:
        """With `above`, private folders, and those above any, are not private themselves, as they are in every box."""
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        name = os.fsdecode(path)
        forms = self.forms(name)
        if os.path.basename(name) == self.launcher:  # a command of the judge's box alone
            return True
        if all(_inside(form, self.readable) for form in forms) or forms <= set(DEVICES):
            return False
        if above and all(form in self.private or _is_above(form, (*self.private, *self.readable)) for form in forms):
            return False
        if any(_inside(form, self.private) or _inside(form, SYSTEM) for form in forms):
            return True
        shown = os.path.abspath(name)
        return shown in DIFFERENT or not _inside(shown, {*SHARED, *self.readable})

    def caller(self, frame: FrameType | None) -> str | None:
        """The file of the code that made the call; None if no code of the tests takes part."""
        inner: FrameType | None = None
        while frame is not None:
            kind = self.kind(frame)
            if kind == OTHER:
                return frame.f_code.co_filename
            if kind == OWN:
                return None
            if kind == IMPORTER and inner is not None and inner.f_code.co_name == "<module>":
                return None  # a module of the standard library or the test tools, imported for the first time
            inner, frame = (None if kind == IMPORTER else frame), frame.f_back
        return None

    def kind(self, frame: FrameType) -> int:
        name = frame.f_code.co_filename
        if name.startswith("<"):
            return IMPORTER if "importlib._bootstrap" in name else LIBRARY
        if name not in self.kinds:
            self.kinds[name] = self.kind_of_file(os.path.abspath(name), str(frame.f_globals.get("__name__", "")))
        kind = self.kinds[name]
        if kind == OWN and frame.f_code.co_name == "find_spec" and frame.f_globals["__name__"] == "slop_code_judge":
            return IMPORTER  # the guard around Python's own function
        return kind

    def kind_of_file(self, path: str, module: str) -> int:
        if any(path.startswith(folder) for folder in self.libraries) and "-packages/" not in path:
            return LIBRARY
        if module == "_pytest.assertion.rewrite":  # it imports the tests
            return IMPORTER
        is_test = any(_inside(form, {self.tests}) for form in self.forms(path))
        if is_test:
            return OTHER
        return OWN if module.startswith(JUDGE) else LIBRARY if module.partition(".")[0] in TRUSTED else OTHER

    def forms(self, path: str) -> set[str]:
        """Without the probes: looking at the path is their own call."""
        self.busy, before = True, self.busy
        try:
            return _forms([path])
        finally:
            self.busy = before

    def add(self, file: str, action: str) -> None:
        inside = _inside(os.path.abspath(file), {self.tests})
        name = os.path.relpath(file, self.tests) if inside else file
        self.reasons[f"{name} {action} before the first test"] = None


def _functions(module: Any, names: Iterable[str], action: str) -> dict[Any, str]:
    return {getattr(module, name): action for name in names if hasattr(module, name)}


def _hidden_state(frame: FrameType, function: Any) -> str | None:
    """Methods of types: the current date, and random numbers that no seed determines."""
    owner = function.__self__
    if function.__name__ == "generate_time_safe":  # of `uuid`
        return "read the clock"
    if function.__name__ in ("now", "utcnow", "today") and isinstance(owner, type):
        return "read the clock" if issubclass(owner, datetime.date) else None
    if not isinstance(owner, _random.Random):
        return None
    if owner is random._inst:
        return "used the global random numbers"
    seeded = function.__name__ != "seed" or frame.f_locals.get("a", 0) is not None
    return None if seeded else "read random numbers"


def _forms(paths: Iterable[str]) -> set[str]:
    return {form for path in paths for form in (os.path.abspath(path), os.path.realpath(path))}


def _is_above(path: str, folders: Iterable[str]) -> bool:
    return any(_inside(folder, {path}) for folder in folders)


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
