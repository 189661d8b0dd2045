import pytest

from slop_code.evaluation.groups import GroupType, group_for

CUSTOM = {"slow": GroupType.FUNCTIONALITY, "must": GroupType.CORE, "odd": GroupType.ERROR}


@pytest.mark.parametrize(
    ("home", "markers", "expected"),
    [
        ("checkpoint_1", [], GroupType.REGRESSION),
        ("checkpoint_1", ["error"], GroupType.REGRESSION),
        ("checkpoint_1", ["functionality", "must"], GroupType.REGRESSION),
        ("checkpoint_3", [], GroupType.REGRESSION),
        ("checkpoint_2", ["error"], GroupType.ERROR),
        ("checkpoint_2", ["regression", "must", "functionality", "error"], GroupType.ERROR),
        ("checkpoint_2", ["regression"], GroupType.REGRESSION),
        ("checkpoint_2", ["must", "functionality", "regression"], GroupType.REGRESSION),
        ("checkpoint_2", ["slow"], GroupType.FUNCTIONALITY),
        ("checkpoint_2", ["must", "functionality"], GroupType.CORE),
        ("checkpoint_2", ["functionality", "odd"], GroupType.ERROR),
        ("checkpoint_2", ["must", "odd"], GroupType.CORE),
        ("checkpoint_2", ["odd", "must"], GroupType.ERROR),
        ("checkpoint_2", ["functionality"], GroupType.FUNCTIONALITY),
        ("checkpoint_2", ["parametrize", "unknown"], GroupType.CORE),
        ("checkpoint_2", [], GroupType.CORE),
    ],
)
def test_six_rules_in_their_order(home, markers, expected):
    assert group_for(home, markers, "checkpoint_2", CUSTOM) is expected


def test_markers_may_be_an_iterator():
    assert group_for("checkpoint_2", iter(["must", "error"]), "checkpoint_2", CUSTOM) is GroupType.ERROR
