"""Distribution packages and the modules that they provide."""

from __future__ import annotations

import functools
import re
import sys

from slop_code.evaluation.command import LOCK

MODULES = {
    "attrs": ("attr", "attrs"),
    "beautifulsoup4": ("bs4",),
    "gitpython": ("git",),
    "markdown": ("markdown",),
    "mysqlclient": ("MySQLdb",),
    "opencv-python": ("cv2",),
    "opencv-python-headless": ("cv2",),
    "pillow": ("PIL",),
    "protobuf": ("google",),
    "psycopg2-binary": ("psycopg2",),
    "pycryptodome": ("Crypto",),
    "pyjwt": ("jwt",),
    "pymupdf": ("fitz", "pymupdf"),
    "pynacl": ("nacl",),
    "pyopenssl": ("OpenSSL",),
    "pyserial": ("serial",),
    "pysocks": ("socks",),
    "pytest": ("pytest", "_pytest", "py"),
    "python-dateutil": ("dateutil",),
    "python-docx": ("docx",),
    "python-dotenv": ("dotenv",),
    "python-magic": ("magic",),
    "python-multipart": ("multipart", "python_multipart"),
    "python-pptx": ("pptx",),
    "python-slugify": ("slugify",),
    "pyyaml": ("yaml",),
    "pyzmq": ("zmq",),
    "rpds-py": ("rpds",),
    "ruamel-yaml": ("ruamel",),
    "scikit-image": ("skimage",),
    "scikit-learn": ("sklearn",),
    "setuptools": ("setuptools", "pkg_resources"),
    "websocket-client": ("websocket",),
}
"""Packages whose modules have other names; the first package of a module is suggested."""

SAME_NAME = (
    "aiohttp", "anyio", "click", "cryptography", "faker", "fastapi", "flask", "freezegun", "h11", "httpx", "hypothesis",
    "jinja2", "lxml", "msgpack", "networkx", "numpy", "openpyxl", "orjson", "pandas", "paramiko", "pexpect", "psutil",
    "pydantic", "redis", "regex", "requests", "respx", "rich", "scipy", "sqlalchemy", "sympy", "tenacity", "toml",
    "tomli", "tqdm", "urllib3", "websockets", "werkzeug", "xmltodict",
)  # fmt: skip
"""Well-known packages that have the name of their module."""

SHARED = frozenset({"google", "ruamel"})
"""Namespace modules, which several packages share."""

OWN = frozenset({"slop_code", "slop_code_fixtures"})
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:$|[\[<>=!~;@(,\s])")
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==\S+( *;.*sys_platform.*)?", re.MULTILINE)


def distribution(requirement: str) -> str | None:
    """The normalised name of a requirement's package; None for a URL or a path."""
    match = _REQUIREMENT.match(requirement)
    return re.sub(r"[-_.]+", "-", match.group(1)).lower() if match else None


def modules_of(package: str) -> tuple[str, ...]:
    return MODULES.get(package, (package.replace("-", "_"),))


def package_for(module: str) -> str | None:
    """The well-known package that provides a module; None where a guess could name a wrong package."""
    for package, modules in MODULES.items():
        if module in modules and module not in SHARED:
            return package
    return module if module in SAME_NAME else None


@functools.cache
def given_modules() -> frozenset[str]:
    """Modules that every test can import: the standard library and the test tools."""
    lock = LOCK.read_text(encoding="utf-8")
    locked = [match.group(1) for match in _LOCKED.finditer(lock) if not match.group(2)]
    tools = {module for package in locked for module in modules_of(package)}
    return frozenset(sys.stdlib_module_names) | tools | OWN
