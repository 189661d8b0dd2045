"""Problems and environments that stay loaded in an evaluator."""

import pytest

from slop_code.errors import ConfigError
from slop_code.evaluation.evaluator.loaded_inputs import LoadedInputs
from slop_code.execution.trees import file_signatures


@pytest.fixture
def settled(monkeypatch):
    """As if every file had been written long ago."""
    monkeypatch.setattr(file_signatures, "SETTLED_NS", -(10**18))


@pytest.mark.usefixtures("settled")
def test_a_problem_and_its_environment_stay_loaded_until_they_change(make_problem, tmp_path):
    inputs = LoadedInputs()
    folder = make_problem({"test_checkpoint_1.py": ""}).path
    problem = inputs.problem(folder, None)
    assert inputs.problem(str(folder), None) is problem is inputs.problem(folder.name, folder.parent)
    environment = inputs.environment(problem, "local")[0]
    assert inputs.environment(problem, None)[0] is environment
    (folder / "environment.yaml").write_text("{name: own, type: local}")
    assert inputs.environment(problem, None)[0].name == "own"
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text() + "timeout: 7\n")
    assert inputs.problem(folder, None).checkpoint(1).timeout == 7
    (folder / "config.yaml").write_text("name: [")
    with pytest.raises(ConfigError):
        inputs.problem(folder, None)
