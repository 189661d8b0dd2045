"""Reading and scaling recipes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Check = Callable[..., None]
Write = Callable[..., Path]


@pytest.mark.parametrize("name", ["pancakes", "soup", "bread"])
def test_show(check: Check, recipes: Path, expected: Callable[[str], str], name: str) -> None:
    check("show", recipes / f"{name}.txt", stdout=expected(f"show_{name}"))


@pytest.mark.parametrize(("name", "servings"), [("pancakes", 6), ("soup", 1), ("bread", 20)])
def test_scale(check: Check, recipes: Path, expected: Callable[[str], str], name: str, servings: int) -> None:
    check("scale", recipes / f"{name}.txt", servings, stdout=expected(f"scale_{name}_{servings}"))


def test_scaling_to_the_same_servings_changes_nothing(
    check: Check, recipes: Path, expected: Callable[[str], str]
) -> None:
    check("scale", recipes / "pancakes.txt", 4, stdout=expected("show_pancakes"))


def test_thirds_stay_exact(check: Check, write: Write) -> None:
    recipe = write("# Tea", "serves: 3", "- water: 1 l")
    for servings, water in [(1, "1/3"), (4, "1 1/3"), (300, "100")]:
        check("scale", recipe, servings, stdout=f"Tea (serves {servings})\n  water: {water} l")


@pytest.mark.functionality
class TestAmounts:
    @pytest.mark.parametrize(
        ("written", "shown"),
        [("10/4 cup", "2 1/2 cup"), ("0.125 kg", "1/8 kg"), ("250g", "250 g")],
    )
    def test_is_written_in_lowest_terms(self, check: Check, write: Write, written: str, shown: str) -> None:
        recipe = write("# Test", "serves: 1", f"- thing: {written}")
        check("show", recipe, stdout=f"Test (serves 1)\n  thing: {shown}")

    def test_a_recipe_may_have_no_ingredients(self, check: Check, write: Write) -> None:
        check("show", write("# Fasting", "serves: 2"), stdout="Fasting (serves 2)")


@pytest.mark.functionality
def test_json(run: Run, recipes: Path) -> None:
    done = run("show", "--json", recipes / "pancakes.txt")
    assert done.returncode == 0, f"ran: {done.args}\n{done.stderr}"
    assert json.loads(done.stdout) == {
        "title": "Pancakes",
        "serves": 4,
        "ingredients": [
            {"name": "flour", "quantity": "1 1/2", "unit": "cup"},
            {"name": "egg", "quantity": "2", "unit": None},
            {"name": "milk", "quantity": "300", "unit": "ml"},
            {"name": "salt", "quantity": None, "unit": None},
        ],
    }, f"ran: {done.args}"


@pytest.mark.functionality
def test_standard_input(check: Check, recipes: Path, expected: Callable[[str], str]) -> None:
    text = (recipes / "bread.txt").read_text(encoding="utf-8")
    check("scale", "-", 20, stdin=text, stdout=expected("scale_bread_20"))


@pytest.mark.error
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["", "// nothing"], "no title"),
        (["# Soup", "- leek: 3"], "no servings"),
        (["", "Soup", "serves: 2"], '2: expected a title, found "Soup"'),
        (["# Soup", "serves: none"], '2: bad servings "none"'),
        (["# Soup", "serves: 2", "", "- leek: some"], '4: bad amount "some"'),
        (["# Soup", "serves: 2", "leek"], '3: cannot read "leek"'),
    ],
)
def test_bad_recipe(check: Check, write: Write, lines: list[str], message: str) -> None:
    recipe = write(*lines)
    separator = ":" if message[0].isdigit() else ": "
    check("show", recipe, code=1, stderr=f"larder: {recipe}{separator}{message}")


@pytest.mark.error
def test_missing_file(check: Check, tmp_path: Path) -> None:
    file = tmp_path / "nothing.txt"
    check("show", file, code=1, stderr=f"larder: {file}: no such file")


@pytest.mark.error
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "no command"),
        (["fry"], 'unknown command "fry"'),
        (["show"], "wrong number of arguments for show"),
        (["show", "--loud", "-"], 'unknown option "--loud"'),
        (["scale", "-", "0"], 'servings must be a whole number above 0, not "0"'),
    ],
)
def test_wrong_use(check: Check, args: list[str], message: str) -> None:
    check(*args, code=2, stderr=f"larder: {message}")
