from __future__ import annotations

from pathlib import Path

import pytest

from slop_code.errors import ConfigError, UsageError
from slop_code.execution.environment import EnvironmentSpec, load_environment, parse_size, shipped_environments

EXISTING = Path(__file__).parents[1] / "data" / "config" / "docker-python3.12-uv.yaml"
LOCAL = "type: local\nname: here\n"


def load(folder: Path, text: str) -> EnvironmentSpec:
    path = folder / "environment.yaml"
    path.write_text(text, encoding="utf-8")
    return EnvironmentSpec.from_yaml(path)


def test_an_existing_file_loads_unchanged():
    spec = EnvironmentSpec.from_yaml(EXISTING)
    assert spec.warnings == ()
    assert (spec.type, spec.name) == ("docker", "docker-python3.12-uv")
    assert spec.docker is not None
    assert spec.docker.image == "ghcr.io/astral-sh/uv:python3.12-trixie-slim"
    assert (spec.docker.network, spec.docker.user, spec.docker.extra_mounts) == ("host", None, {})
    assert spec.environment.env == {"UV_CACHE_DIR": "/tmp/uv"}
    assert spec.setup.commands == ["uv init --bare", "uv venv"]
    assert spec.setup.eval_commands == ["uv add -r requirements.txt"]
    assert spec.snapshot.compression == "gz"
    assert spec.entry("main.py") == ["uv", "run", "main.py"]


def test_defaults_are_safe(tmp_path):
    spec = load(tmp_path, LOCAL)
    assert (spec.isolation, spec.network, spec.environment.include_os_env) == ("strict", "none", False)
    assert spec.limits.model_dump() == {
        "memory": 1 << 30,
        "cpus": 1.0,
        "processes": 256,
        "disk": 200 << 20,
        "output": 32 << 20,
    }
    assert (spec.local.requires_tty, spec.local.shell) == (False, None)
    assert load(tmp_path, f"{LOCAL}isolation:\nnetwork: ~\nlimits:\n").model_dump() == spec.model_dump()


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (1, 1),
        (4096, 4096),
        (4096.0, 4096),
        ("512", 512),
        ("512B", 512),
        ("1K", 1 << 10),
        ("1kb", 1 << 10),
        ("200M", 200 << 20),
        ("200 MiB", 200 << 20),
        ("1.5g", 3 << 29),
        (" 2GIB ", 2 << 30),
    ],
)
def test_sizes_are_parsed_with_their_units(value, size):
    assert parse_size(value) == size


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        True,
        None,
        "",
        "M",
        "1T",
        "1 M B",
        "-1M",
        "1e9",
        "0.1",
        float("nan"),
        float("inf"),
        [1],
        "9" * 99,
    ],
)
def test_an_invalid_size_is_refused(value):
    with pytest.raises(ValueError, match="a size such as 512M or 1G"):
        parse_size(value)


@pytest.mark.parametrize(
    ("commands", "entry_file", "argv"),
    [
        ("{}", "main", ["python", "main.py"]),
        ("{}", "main.py", ["python", "main.py"]),
        ("{}", "src/main", ["python", "src/main.py"]),
        ("{}", "src/main.py", ["python", "src/main.py"]),
        ("{}", "main.pyw", ["python", "main.pyw.py"]),
        ("{command: uv run --no-sync}", "main", ["uv", "run", "--no-sync", "main.py"]),
        ("{command: \"sh -c 'a b'\", entry_file: '{entry_file}'}", "main", ["sh", "-c", "a b", "main"]),
        ("{command: node, entry_file: 'dist/{entry_file}.js'}", "main", ["node", "dist/main.js"]),
        ("{command: node, entry_file: fixed.js}", "main", ["node", "fixed.js"]),
        ("{command: '', entry_file: '{entry_file}.sh'}", "main", ["./main.sh"]),
        ("{command: '', entry_file: '{entry_file}.sh'}", "main.sh", ["./main.sh"]),
        ("{command: '', entry_file: '{entry_file}.sh'}", "bin/main", ["bin/main.sh"]),
        ("{entry_file: '{other}{entry_file}.py'}", "main", ["python", "{other}main.py"]),
    ],
)
def test_the_entry_command_follows_the_template(tmp_path, commands, entry_file, argv):
    assert load(tmp_path, f"{LOCAL}commands: {commands}").entry(entry_file) == argv


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a", "type: missing, expected 'docker' or 'local'"),
        ("type: vm\nname: a", "type: found 'vm', expected 'docker' or 'local'"),
        ("type: locl\nname: a", "type: found 'locl', expected 'docker' or 'local'; did you mean 'local'?"),
        ("type: local", "name: missing, expected text"),
        (
            "type: docker\nname: a",
            "docker: found nothing, expected a mapping with at least image, as type is docker",
        ),
        ("type: docker\nname: a\ndocker: {}", "docker.image: missing, expected text"),
        (f"{LOCAL}isolation: some", "isolation: found 'some', expected one of strict, none"),
        (f"{LOCAL}network: host", "network: found 'host', expected 'none' or 'full'"),
        (
            f"{LOCAL}limits: {{memory: lots}}",
            "limits.memory: found 'lots', expected a size such as 512M or 1G",
        ),
        (f"{LOCAL}limits: {{cpus: 0}}", "limits.cpus: found 0, expected a number above 0"),
        (f"{LOCAL}limits: {{processes: 0}}", "limits.processes: found 0, expected a number of at least 1"),
        (f"{LOCAL}limits: {{processes: 1.5}}", "limits.processes: found 1.5, expected a whole number"),
        (f"{LOCAL}setup: {{commands: uv sync}}", "setup.commands: found 'uv sync', expected a list"),
        (f"{LOCAL}local: {{requires_tty: 1}}", "local.requires_tty: found 1, expected true or false"),
        (
            f'{LOCAL}commands: {{command: "a \'b"}}',
            'commands.command: found "a \'b", expected a command line with its quotes closed',
        ),
        (
            f'{LOCAL}setup: {{commands: ["echo a\\0"]}}',
            "setup.commands.0: found 'echo a\\x00', expected a command line without NUL",
        ),
        (
            "type: docker\nname: a\ndocker: {image: i, extra_mounts: /tmp}",
            "docker.extra_mounts: found '/tmp', expected a list or a mapping of mounts",
        ),
    ],
)
def test_each_mistake_is_one_line(tmp_path, text, expected):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    (mistake,) = caught.value.mistakes
    assert mistake.message == expected
    assert str(caught.value).startswith(f"{tmp_path / 'environment.yaml'}:")


@pytest.mark.parametrize(
    "mounts", ["{}", "{/data: {bind: /data, mode: ro}}", "['/data:/data:ro']", "[{source: /data}]"]
)
def test_every_notation_of_a_mount_loads(tmp_path, mounts):
    spec = load(tmp_path, f"type: docker\nname: a\ndocker: {{image: i, user: 1000, extra_mounts: {mounts}}}")
    assert spec.docker is not None
    assert spec.docker.user == "1000"
    assert spec.digest() == EnvironmentSpec.model_validate(spec.model_dump(mode="json")).digest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type: local\nnmae: here\n", "2: unknown key nmae; did you mean 'name'?"),
        ("type: docker\nname: a\ndocker:\n  imge: i\n", "4: unknown key docker.imge; did you mean 'image'?"),
        ("type: local\nname: a\nsetup:\n\tcommands: []\n", "4:1: a tab; YAML is indented with spaces"),
    ],
)
def test_a_misspelling_and_a_tab_are_named_with_their_lines(tmp_path, text, message):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == f"{tmp_path / 'environment.yaml'}:{message}"


def test_unknown_keys_are_warnings(tmp_path):
    spec = load(tmp_path, f"{LOCAL}colour: red\nsetup: {{speed: 1}}\nenvironment: {{env: {{A: 1}}}}")
    assert spec.warnings == (
        f"{tmp_path / 'environment.yaml'}:3: unknown key colour (ignored)",
        f"{tmp_path / 'environment.yaml'}:4: unknown key setup.speed (ignored)",
    )
    assert spec.environment.env == {"A": "1"}
    assert "warnings" not in spec.model_dump()


def test_the_digest_depends_on_content_alone(tmp_path):
    first = load(tmp_path, LOCAL).digest()
    assert load(tmp_path, f"{LOCAL}limits: {{memory: 1024M}}\ndescription: other").digest() == first
    assert load(tmp_path, f"{LOCAL}limits: {{memory: 2G}}").digest() != first


def test_shipped_environments_load():
    shipped = shipped_environments()
    assert list(shipped) == ["docker-python3.12-uv", "local"]
    for name, description in shipped.items():
        spec = load_environment(name)
        assert spec.name == name
        assert spec.warnings == ()
        assert description.strip()
        assert "\n" not in description
        assert spec.entry("main") == spec.entry("main.py") == ["python", "main.py"]


def test_an_environment_is_loaded_by_its_path(tmp_path):
    assert load_environment(str(EXISTING)).commands.command == "uv run"
    with pytest.raises(UsageError, match=r"gone: no such environment; shipped are docker-python3\.12-uv, local"):
        load_environment("gone")
    with pytest.raises(UsageError, match=r"^lcal: no such environment; did you mean 'local'\?$"):
        load_environment("lcal")
    with pytest.raises(ConfigError, match="is a folder"):
        load_environment(str(tmp_path))
