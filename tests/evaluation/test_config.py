from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.config import (
    CheckpointConfig,
    CheckpointState,
    ConfigError,
    Difficulty,
    GroupType,
    ProblemConfig,
)

EXAMPLE = Path(__file__).parents[1] / "data" / "config" / "problem"
BASE = {
    "name": "name: p",
    "version": "version: 1",
    "description": "description: d",
    "tags": "tags: []",
    "entry_file": "entry_file: main",
    "checkpoints": "checkpoints: {checkpoint_1: {}}",
}


def load(folder: Path, **lines: str) -> ProblemConfig:
    """The smallest good problem, with the given lines in place of its own; an empty one is left out."""
    text = "\n".join(line for line in {**BASE, **lines}.values() if line)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    return ProblemConfig.from_yaml(folder)


def mistakes(folder: Path, **lines: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, **lines)
    prefix = rf"{re.escape(str(folder / 'config.yaml'))}(:\d+)?: "
    return [re.sub(prefix, "", line) for line in str(caught.value).splitlines()]


def test_an_existing_problem_loads_unchanged():
    problem = ProblemConfig.from_yaml(EXAMPLE)
    assert (problem.name, problem.version, problem.entry_file) == ("word_count", "1.1", "main.py")
    assert problem.difficulty is Difficulty.EASY
    assert problem.inspiration is None
    assert problem.env == {"LANG": "C.UTF-8", "WORKERS": "2", "DEBUG": "false"}
    assert problem.custom_groups == {"slow": GroupType.FUNCTIONALITY}
    assert problem.assets == {"files": EXAMPLE / "assets"}
    assert problem.path == EXAMPLE
    assert problem.warnings == (f"{EXAMPLE / 'config.yaml'}:32: unknown key checkpoints.checkpoint_2.colour (ignored)",)
    assert problem.canary == "2024-01-01"


def test_the_canary_is_not_part_of_the_digest():
    problem = ProblemConfig.from_yaml(EXAMPLE)
    checkpoint = problem.checkpoint(1)
    other = problem.model_copy(update={"canary": "another text"})
    assert problem.digest(checkpoint) == other.digest(checkpoint)


def test_checkpoints_come_in_their_order_with_what_they_inherit():
    problem = ProblemConfig.from_yaml(EXAMPLE)
    found = [
        (name, checkpoint.name, checkpoint.order, checkpoint.timeout, checkpoint.env["WORKERS"])
        for name, checkpoint in problem.iterate_checkpoint_items()
    ]
    assert found == [
        ("checkpoint_1", "checkpoint_1", 1, 20.0, "2"),
        ("checkpoint_2", "checkpoint_2", 2, 45.5, "4"),
        ("checkpoint_10", "checkpoint_10", 3, 20.0, "2"),
    ]
    assert list(problem.checkpoints) == ["checkpoint_1", "checkpoint_2", "checkpoint_10"]
    assert problem.checkpoints["checkpoint_2"].env["LANG"] == "C.UTF-8"
    assert problem.checkpoints["checkpoint_2"].state is CheckpointState.FULL_TESTS
    assert not problem.checkpoints["checkpoint_10"].include_prior_tests


@pytest.mark.parametrize(
    ("problem", "checkpoint", "timeout", "session"),
    [
        ("", "{}", 30.0, None),
        ("timeout: 5", "{}", 5.0, None),
        ("timeout: 5", "{timeout: 7}", 7.0, None),
        ("timeout: 5", "{timeout: null}", 5.0, None),
        ("", "{timeout: 0.5}", 0.5, None),
        ("session_timeout: 90", "{}", 30.0, 90.0),
        ("session_timeout: 90", "{session_timeout: 60}", 30.0, 60.0),
        ("", "", 30.0, None),
    ],
)
def test_timeouts_of_a_checkpoint_override_those_of_the_problem(tmp_path, problem, checkpoint, timeout, session):
    loaded = load(tmp_path, extra=problem, checkpoints=f"checkpoints: {{a: {checkpoint}}}").checkpoints["a"]
    assert (loaded.timeout, loaded.session_timeout) == (timeout, session)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("checkpoint_2", "checkpoint_2"),
        ("2", "checkpoint_2"),
        (2, "checkpoint_2"),
        (10, "checkpoint_10"),
        ("3", "checkpoint_10"),
        ("01", "checkpoint_1"),
    ],
)
def test_checkpoint_by_name_or_number(wanted, name):
    assert ProblemConfig.from_yaml(EXAMPLE).checkpoint(wanted).name == name


def test_an_exact_name_wins_over_a_number(tmp_path):
    problem = load(tmp_path, checkpoints='checkpoints: {checkpoint_2: {}, "2": {}}')
    assert problem.checkpoint(2).name == "2"
    assert problem.checkpoint("checkpoint_2").name == "checkpoint_2"


@pytest.mark.parametrize("wanted", ["checkpoint_3", "4", 0, "-1", "", "²"])
def test_unknown_checkpoints_are_told_with_the_known(wanted):
    with pytest.raises(UsageError, match="there are checkpoint_1, checkpoint_2, checkpoint_10"):
        ProblemConfig.from_yaml(EXAMPLE).checkpoint(wanted)


def test_a_misspelt_checkpoint_names_the_near_one():
    with pytest.raises(UsageError, match=r"no checkpoint 'chekpoint_2'; did you mean 'checkpoint_2'\?$"):
        ProblemConfig.from_yaml(EXAMPLE).checkpoint("chekpoint_2")


@pytest.mark.parametrize(
    ("key", "line", "expected"),
    [
        ("name", "", "name: missing, expected text"),
        ("name", "name:", "name: missing, expected text"),
        ("name", "name: ''", "name: found '', expected text that is not empty"),
        ("name", "name: 3", "name: found 3, expected text"),
        ("version", "version: true", "version: found true, expected text"),
        ("version", "version: [1]", "version: found a list, expected text"),
        ("tags", "tags: cli", "tags: found 'cli', expected a list"),
        ("tags", "tags: [a, 1]", "tags.1: found 1, expected text"),
        (
            "entry_file",
            "entry_file: /main",
            "entry_file: found '/main', expected a path inside the submission",
        ),
        (
            "entry_file",
            "entry_file: a/../b",
            "entry_file: found 'a/../b', expected a path inside the submission",
        ),
        ("entry_file", "entry_file: .", "entry_file: found '.', expected a path inside the submission"),
        ("timeout", "timeout: 0", "timeout: found 0, expected a number of at least 0.001"),
        ("timeout", "timeout: '3'", "timeout: found '3', expected a number"),
        ("timeout", "timeout: true", "timeout: found true, expected a number"),
        ("timeout", "timeout: .inf", "timeout: found inf, expected a finite number"),
        ("session_timeout", "session_timeout: -1", "session_timeout: found -1, expected a number of at least 0.001"),
        ("in_process", "in_process: 1", "in_process: found 1, expected true or false"),
        ("visible", "visible: [../x]", "visible.0: found '../x', expected a glob inside tests/"),
        ("difficulty", "difficulty: Odd", "difficulty: found 'Odd', expected one of Easy, Medium, Hard"),
        (
            "difficulty",
            "difficulty: easyy",
            "difficulty: found 'easyy', expected one of Easy, Medium, Hard; did you mean 'Easy'?",
        ),
        ("env", "env: {A: [1]}", "env.A: found a list, expected text"),
        ("env", "env: {A=B: x}", "env.A=B: found 'A=B', expected a name without '='"),
        ("env", "env: [A]", "env: found a list, expected a mapping"),
        ("markers", "markers: {slow: x}", "markers.slow: found 'x', expected a mapping"),
        (
            "markers",
            "markers: {quarantined: {group: Core}}",
            "markers.quarantined: found 'quarantined', expected another name: it is kept for the tests "
            "in tests/flaky.json",
        ),
        (
            "markers",
            "markers: {slow: {group: Fast}}",
            "markers.slow.group: found 'Fast', expected one of Core, Functionality, Error, Regression",
        ),
        (
            "markers",
            "markers: {slow: {}}",
            "markers.slow.group: missing, expected one of Core, Functionality, Error, Regression",
        ),
        ("checkpoints", "", "checkpoints: missing, expected a mapping"),
        ("checkpoints", "checkpoints: {}", "checkpoints: found an empty mapping, expected at least 1 entry"),
        ("checkpoints", "checkpoints: [a]", "checkpoints: found a list, expected a mapping"),
        ("checkpoints", "checkpoints: {a: 5}", "checkpoints.a: found 5, expected a mapping"),
        (
            "checkpoints",
            "checkpoints: {a: {order: two}}",
            "checkpoints.a.order: found 'two', expected a whole number",
        ),
        (
            "checkpoints",
            "checkpoints: {a: {order: true}}",
            "checkpoints.a.order: found true, expected a whole number",
        ),
        (
            "checkpoints",
            "checkpoints: {a: {order: 2}, b: {}}",
            "checkpoints.b.order: found 2, expected another number than that of a",
        ),
        (
            "checkpoints",
            "checkpoints: {a b: {}}",
            "checkpoints.a b: found 'a b', expected a name of letters, digits, '_', '.' and '-'",
        ),
        (
            "checkpoints",
            "checkpoints: {..: {}}",
            "checkpoints...: found '..', expected a name of letters, digits, '_', '.' and '-'",
        ),
        (
            "static_assets",
            "static_assets: {a: {path: /etc}}",
            "static_assets.a.path: found '/etc', expected a path inside the problem folder",
        ),
        (
            "static_assets",
            "static_assets: {a: {path: ../x}}",
            "static_assets.a.path: found '../x', expected a path inside the problem folder",
        ),
        (
            "static_assets",
            "static_assets: {a: {path: gone}}",
            "static_assets.a.path: found 'gone', expected a file or folder that exists",
        ),
        ("static_assets", "static_assets: {a: }", "static_assets.a.path: missing, expected text"),
        (
            "static_assets",
            "static_assets: {a-b: {path: config.yaml}, a_b: {path: config.yaml}}",
            "static_assets.a_b: found 'SCBENCH_ASSET_A_B', expected another variable than that of a-b",
        ),
    ],
)
def test_each_mistake_is_one_line(tmp_path, key, line, expected):
    assert mistakes(tmp_path, **{key: line}) == [expected]


def test_one_error_has_all_mistakes(tmp_path):
    found = mistakes(
        tmp_path,
        name="",
        tags="tags: 1",
        checkpoints="checkpoints: {a: {order: 1, timeout: x}, b: {order: 1}}",
        static_assets="static_assets: {gone: {path: gone}}",
    )
    assert found == [
        "name: missing, expected text",
        "tags: found 1, expected a list",
        "checkpoints.a.timeout: found 'x', expected a number",
        "checkpoints.b.order: found 1, expected another number than that of a",
        "static_assets.gone.path: found 'gone', expected a file or folder that exists",
    ]


@pytest.mark.parametrize(
    ("text", "record"),
    [
        (
            "name: p\nversion: 1\ndescription: d\ntags: []\nentry_file: main\ntimeout: soon\ncheckpoints: {a: }\n",
            (6, "timeout", "'soon'", "a number"),
        ),
        ("version: 1\ndescription: d\ntags: []\nentry_file: m\ncheckpoints: {a: }\n", (None, "name", None, "text")),
        ("name: p\nname: q\n", (2, None, None, None)),
        ("- a\n", (None, None, None, None)),
    ],
    ids=["value", "missing", "twice", "no mapping"],
)
def test_a_mistake_is_a_record(tmp_path, text, record):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        ProblemConfig.from_yaml(tmp_path)
    (mistake,) = caught.value.mistakes
    assert (mistake.line, mistake.key, mistake.found, mistake.expected) == record
    assert mistake.path == tmp_path / "config.yaml"
    assert str(caught.value) == str(mistake)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.mistakes) == (str(mistake), (mistake,))


def test_a_link_may_not_lead_an_asset_out(tmp_path):
    problem = tmp_path / "problem"
    problem.mkdir()
    (tmp_path / "secret").touch()
    (problem / "asset").symlink_to("../secret")
    assert mistakes(problem, static_assets="static_assets: {a: {path: asset}}") == [
        "static_assets.a.path: found 'asset', expected a path inside the problem folder"
    ]


@pytest.mark.parametrize("group", ["error", "Error", "ERROR"])
def test_groups_in_any_case(tmp_path, group):
    problem = load(tmp_path, markers=f"markers: {{slow: {{group: {group}}}}}")
    assert problem.custom_groups == {"slow": GroupType.ERROR}
    assert problem.markers["slow"].description == ""


def test_order_is_the_position_by_default(tmp_path):
    problem = load(tmp_path, checkpoints="checkpoints: {z: , a: {}, m: {order: 0}}")
    assert [(name, item.order) for name, item in problem.iterate_checkpoint_items()] == [
        ("m", 0),
        ("z", 1),
        ("a", 2),
    ]


@pytest.mark.parametrize(("value", "version"), [("1", "1"), ("2.5", "2.5"), ("'1.10'", "1.10"), ("2025-12-22",) * 2])
def test_versions_are_text(tmp_path, value, version):
    assert load(tmp_path, version=f"version: {value}").version == version


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": found nothing, expected a mapping"),
        (b"- a", ": found a list, expected a mapping"),
        (b"a: ]", ":1:4: not YAML: "),
        (b"name: a\nname: b", ":2:1: key 'name' stands in line 1 already"),
        (b"a: {b: 1,\n  'b': 2}", ":2:3: key 'b' stands in line 1 already"),
        (b"a: 1\n---\nb: 1", ":2:1: not YAML: "),
        (b"name: \xff", ": not UTF-8 text (byte 6)"),
        (b"a: !!int b", ": not YAML: "),
        (b"a: !!python/name:os.system", ":1:4: not YAML: "),
        (b"a: &a [*a]", ": aliases make it larger than 100000 values"),
        pytest.param(b"a: " + b"[" * 500_000, ":1:43: nested deeper than 40 levels", id="deep"),
        pytest.param(b"#" * (1 << 20) + b"#", ": larger than 1048576 bytes", id="large"),
    ],
)
def test_files_that_are_no_configuration(tmp_path, content, message):
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        ProblemConfig.from_yaml(tmp_path)
    assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("content", "position"),
    [
        ("name: p\ncheckpoints:\n\tcheckpoint_1: {}\n", "3:1"),
        ("name: p\ncheckpoints:\n  a:\n  \torder: 1\n", "4:3"),
        ("tags:\n  - a\n\t- b\n", "3:1"),
        ("name: p\n\tversion: 1\n", "2:1"),
        ("\tname: p\n", "1:1"),
        ("tags:\n  -\ta: 1\n    b: 1\n", "2:4"),
    ],
)
def test_a_tab_is_called_a_tab(tmp_path, content, position):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(ConfigError) as caught:
        ProblemConfig.from_yaml(tmp_path)
    assert str(caught.value) == f"{tmp_path / 'config.yaml'}:{position}: a tab; YAML is indented with spaces"


@pytest.mark.parametrize("content", ["a: 'x\ty'\nb: ]\n", "a: |\n  x\n  \ty\nb: ]\n", "a: [x,\ty]\nb: ]"])
def test_a_tab_that_is_no_mistake_is_not_blamed(tmp_path, content):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(ConfigError, match=r":\d+:\d+: not YAML: "):
        ProblemConfig.from_yaml(tmp_path)


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ({"entry_file": "entry_fil: main"}, 5, "unknown key entry_fil; did you mean 'entry_file'?"),
        ({"name": "nmae: p"}, 1, "unknown key nmae; did you mean 'name'?"),
        (
            {"static_assets": "static_assets:\n  a:\n    pth: x"},
            9,
            "unknown key static_assets.a.pth; did you mean 'path'?",
        ),
        ({"markers": "markers:\n  slow: {gruop: Core}"}, 8, "unknown key markers.slow.gruop; did you mean 'group'?"),
        ({"name": '"nmae\\e[2J": p'}, None, "name: missing, expected text"),
        ({"name": '"name\\e": p'}, 1, "unknown key 'name\\x1b'; did you mean 'name'?"),
    ],
)
def test_a_misspelt_key_that_is_needed_names_the_near_one_and_its_line(tmp_path, lines, line, message):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, **lines)
    (mistake,) = caught.value.mistakes
    assert (mistake.line, mistake.message) == (line, message)


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        ({"extra": "timout: 3"}, "7: unknown key timout (ignored); did you mean 'timeout'?"),
        ({"extra": "colour: red"}, "7: unknown key colour (ignored)"),
        ({"timeout": "timeout: 3", "extra": "timout: 4"}, "8: unknown key timout (ignored)"),
        (
            {"checkpoints": "checkpoints:\n  a:\n    oder: 1"},
            "8: unknown key checkpoints.a.oder (ignored); did you mean 'order'?",
        ),
        ({"extra": '"tim\\eout": 3'}, "7: unknown key 'tim\\x1bout' (ignored); did you mean 'timeout'?"),
    ],
)
def test_a_misspelt_key_that_is_not_needed_is_a_warning_with_its_line(tmp_path, lines, warning):
    assert load(tmp_path, **lines).warnings == (f"{tmp_path / 'config.yaml'}:{warning}",)


def test_merged_mappings_are_no_duplicates(tmp_path):
    problem = load(
        tmp_path,
        checkpoints="checkpoints: {a: &a {timeout: 5, order: 1}, b: {<<: *a, order: 2}}",
    )
    assert [item.timeout for item in problem.checkpoints.values()] == [5.0, 5.0]


def test_a_configuration_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        ProblemConfig.from_yaml(tmp_path / "gone")
    (tmp_path / "config.yaml").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        ProblemConfig.from_yaml(tmp_path)


def test_a_linked_configuration_is_read(tmp_path):
    load(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.yaml").symlink_to("../config.yaml")
    assert ProblemConfig.from_yaml(str(tmp_path / "other")).name == "p"


def test_a_relative_folder_becomes_absolute(tmp_path, monkeypatch):
    load(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert ProblemConfig.from_yaml(".").path == tmp_path


def test_warnings_and_path_stay_out_of_dumps(tmp_path):
    problem = load(tmp_path, extra="path: 5\nwarnings: [x]", checkpoints="checkpoints: {a: {name: 7}}")
    assert [warning.split(": ", 1)[1] for warning in problem.warnings] == [
        "unknown key checkpoints.a.name (ignored)",
        "unknown key path (ignored)",
        "unknown key warnings (ignored)",
    ]
    assert not {"path", "warnings"} & problem.model_dump().keys()
    assert problem.checkpoints["a"].name == "a"


def test_a_problem_survives_its_dump_and_a_pickle(tmp_path):
    problem = ProblemConfig.from_yaml(EXAMPLE)
    again = ProblemConfig.model_validate(problem.model_dump(mode="json"))
    assert again.model_dump() == problem.model_dump()
    assert [again.digest(one) for one in again.checkpoints.values()] == [
        problem.digest(one) for one in problem.checkpoints.values()
    ]
    copy = pickle.loads(pickle.dumps(problem))
    assert (copy, copy.path, copy.checkpoint(2).name) == (problem, problem.path, "checkpoint_2")


@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        ({"description": "description: other"}, False),
        ({"difficulty": "difficulty: Hard"}, False),
        ({"extra": "unknown: 1"}, False),
        ({"parallel": "parallel: 8", "by": "parallel_by: test"}, False),
        ({"parallel": "parallel: auto"}, False),
        ({"checkpoints": "checkpoints: {a: {}, b: {state: Verified}, c: {}}"}, False),
        ({"checkpoints": "checkpoints: {a: {}, b: {timeout: 30}, c: {}}"}, False),
        ({"checkpoints": "checkpoints: {a: {order: 5}, b: {order: 7}, c: {order: 9}}"}, False),
        (
            {"checkpoints": "checkpoints: {a: {timeout: 5, env: {A: b}, include_prior_tests: false}, b: {}, c: {}}"},
            False,
        ),
        ({"checkpoints": "checkpoints: {a: {}, b: {}, c: {timeout: 5}}"}, False),
        ({"checkpoints": "checkpoints: {a: {}, b: {}, c: {}, d: {}}"}, False),
        ({"checkpoints": "checkpoints: {a: {}, b: {}}"}, False),
        ({"checkpoints": "checkpoints: {a: {}, b: {timeout: 5}, c: {}}"}, True),
        ({"checkpoints": "checkpoints: {a: {}, b: {session_timeout: 5}, c: {}}"}, True),
        ({"checkpoints": "checkpoints: {a: {}, b: {env: {A: b}}, c: {}}"}, True),
        ({"checkpoints": "checkpoints: {a: {}, b: {include_prior_tests: false}, c: {}}"}, True),
        ({"checkpoints": "checkpoints: {z: {}, b: {}, c: {}}"}, True),
        ({"checkpoints": "checkpoints: {a: {order: 2}, b: {order: 1}, c: {order: 3}}"}, True),
        ({"timeout": "timeout: 31"}, True),
        ({"env": "env: {A: b}"}, True),
        ({"entry_file": "entry_file: other"}, True),
        ({"in_process": "in_process: true"}, True),
        ({"visible": "visible: [data/*]"}, True),
        ({"test_dependencies": "test_dependencies: [pyyaml]"}, True),
        ({"markers": "markers: {slow: {group: core}}"}, True),
    ],
)
def test_the_digest_follows_what_can_change_a_verdict_on_that_checkpoint(tmp_path, lines, changes):
    plain = load(tmp_path, checkpoints="checkpoints: {a: {}, b: {}, c: {}}")
    changed = load(tmp_path, **{"checkpoints": "checkpoints: {a: {}, b: {}, c: {}}", **lines})
    assert (changed.digest(changed.checkpoints["b"]) != plain.digest(plain.checkpoints["b"])) is changes


def test_checkpoints_have_digests_of_their_own(tmp_path):
    problem = load(tmp_path, checkpoints="checkpoints: {a: {}, b: {}}")
    assert problem.digest(problem.checkpoints["a"]) != problem.digest(problem.checkpoints["b"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("parallel: 0", "parallel: found 0, expected 'auto' or a whole number from 1 to 64"),
        ("parallel: 65", "parallel: found 65, expected 'auto' or a whole number from 1 to 64"),
        ("parallel: 1.5", "parallel: found 1.5, expected 'auto' or a whole number from 1 to 64"),
        ("parallel: true", "parallel: found true, expected 'auto' or a whole number from 1 to 64"),
        (
            "parallel: atuo",
            "parallel: found 'atuo', expected 'auto' or a whole number from 1 to 64; did you mean 'auto'?",
        ),
        ("parallel: many", "parallel: found 'many', expected 'auto' or a whole number from 1 to 64"),
        ("parallel_by: class", "parallel_by: found 'class', expected 'file' or 'test'"),
    ],
)
def test_parallel_is_a_number_and_by_a_choice(tmp_path, line, message):
    assert mistakes(tmp_path, extra=line) == [message]


def test_one_pair_unless_more_are_asked_for(tmp_path):
    assert (load(tmp_path).parallel, load(tmp_path).parallel_by) == (1, "file")
    asked = load(tmp_path, parallel="parallel: 64", by="parallel_by: test")
    assert (asked.parallel, asked.parallel_by) == (64, "test")


@pytest.mark.parametrize(
    ("lines", "fixed", "unit"),
    [
        ({}, 1, "file"),
        ({"parallel": "parallel: 8"}, 8, "file"),
        ({"parallel": "parallel: auto"}, 1, "test"),
        ({"parallel": "parallel: auto", "by": "parallel_by: file"}, 1, "file"),
        ({"parallel": "parallel: auto", "by": "parallel_by: test"}, 1, "test"),
    ],
)
def test_auto_divides_by_test_unless_the_author_says_otherwise(tmp_path, lines, fixed, unit):
    problem = load(tmp_path, **lines)
    assert (problem.fixed_pairs, problem.unit) == (fixed, unit)
    assert pickle.loads(pickle.dumps(problem)).unit == unit


def test_models_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        CheckpointConfig().order = 2
