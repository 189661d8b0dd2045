"""Shopping lists and the table of units."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Check = Callable[..., None]
Write = Callable[..., Path]
Expected = Callable[[str], str]


def test_one_recipe(check: Check, recipes: Path) -> None:
    check("shop", recipes / "pancakes.txt", stdout="egg: 2\nflour: 1 1/2 cup\nmilk: 300 ml\nsalt")


@pytest.mark.parametrize(
    ("names", "listing"),
    [
        (["pancakes", "omelette"], "shop_pancakes_omelette"),
        (["pancakes", "soup", "bread", "omelette"], "shop_all"),
    ],
)
def test_several_recipes(check: Check, recipes: Path, expected: Expected, names: list[str], listing: str) -> None:
    check("shop", *(recipes / f"{name}.txt" for name in names), stdout=expected(listing))


def test_a_recipe_given_twice_counts_twice(check: Check, recipes: Path) -> None:
    files = [recipes / "pancakes.txt"] * 2
    check("shop", *files, stdout="egg: 4\nflour: 3 cup\nmilk: 600 ml\nsalt")


def test_servings_apply_to_every_recipe(check: Check, recipes: Path) -> None:
    files = [recipes / "pancakes.txt", recipes / "omelette.txt"]
    listing = "black pepper\nbutter: 20 g\negg: 7\nflour: 3/4 cup\nmilk: 150 ml + 2 tbsp\nsalt"
    check("shop", "--servings", 2, *files, stdout=listing)


@pytest.mark.functionality
class TestNames:
    def test_ignore_case_and_spacing(self, check: Check, write: Write) -> None:
        recipe = write("# Mix", "serves: 1", "- Brown  Sugar: 1 cup", "- brown sugar: 2 cup")
        check("shop", recipe, stdout="brown sugar: 3 cup")

    def test_without_amount_add_nothing(self, check: Check, write: Write) -> None:
        recipe = write("# Mix", "serves: 1", "- salt", "- Salt: 1 tsp", "- pepper")
        check("shop", recipe, stdout="pepper\nsalt: 1 tsp")


@pytest.mark.functionality
def test_json(run: Run, recipes: Path) -> None:
    done = run("shop", "--json", recipes / "pancakes.txt", recipes / "omelette.txt")
    assert done.returncode == 0, f"ran: {done.args}\n{done.stderr}"
    assert json.loads(done.stdout) == [
        {"name": "black pepper", "amounts": []},
        {"name": "butter", "amounts": [{"quantity": "10", "unit": "g"}]},
        {"name": "egg", "amounts": [{"quantity": "5", "unit": None}]},
        {"name": "flour", "amounts": [{"quantity": "1 1/2", "unit": "cup"}]},
        {"name": "milk", "amounts": [{"quantity": "300", "unit": "ml"}, {"quantity": "1", "unit": "tbsp"}]},
        {"name": "salt", "amounts": []},
    ], f"ran: {done.args}"


@pytest.mark.functionality
def test_standard_input_is_a_recipe_too(check: Check, recipes: Path) -> None:
    stdin, stdout = "# Egg\nserves: 1\n- EGG: 1/2\n", "black pepper\nbutter: 10 g\negg: 3 1/2\nmilk: 1 tbsp"
    check("shop", "-", recipes / "omelette.txt", stdin=stdin, stdout=stdout)


@pytest.mark.conversion
def test_all_recipes_with_units(check: Check, recipes: Path, units: Path, expected: Expected) -> None:
    files = [recipes / f"{name}.txt" for name in ("pancakes", "soup", "bread", "omelette")]
    check("shop", "--units", units, *files, stdout=expected("shop_all_units"))


@pytest.mark.conversion
@pytest.mark.parametrize(
    ("amounts", "total"),
    [
        (["1 cup", "2 tsp"], "250 ml"),
        (["1 cup", "1/2 cup"], "1 1/2 cup"),
        (["1 kg", "2 oz", "3 pinch", "1"], "1 + 1056 7/10 g + 3 pinch"),
    ],
)
def test_units_of_one_base_are_added(check: Check, write: Write, units: Path, amounts: list[str], total: str) -> None:
    recipe = write("# Mix", "serves: 1", *(f"- stuff: {amount}" for amount in amounts))
    check("shop", recipe, "--units", units, stdout=f"stuff: {total}")


@pytest.mark.error
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["// volume", "cup 240 ml"], '2: cannot read "cup 240 ml"'),
        (["cup = ml"], '1: cannot read "cup = ml"'),
        (["cup = 240 ml", "", "cup = 250 ml"], '3: "cup" is defined twice'),
    ],
)
def test_bad_table(check: Check, write: Write, recipes: Path, lines: list[str], message: str) -> None:
    table = write(*lines)
    check("shop", "--units", table, recipes / "soup.txt", code=1, stderr=f"larder: {table}:{message}")


@pytest.mark.error
def test_missing_table(check: Check, recipes: Path, tmp_path: Path) -> None:
    table = tmp_path / "no-table"
    stderr = f"larder: {table}: no such file"
    check("shop", "--units", table, recipes / "soup.txt", code=1, stderr=stderr)


@pytest.mark.error
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "shop needs at least one recipe"),
        (["-", "--units"], "option --units needs a value"),
        (["-", "--servings", "two"], 'servings must be a whole number above 0, not "two"'),
    ],
)
def test_wrong_use(check: Check, args: list[str], message: str) -> None:
    check("shop", *args, code=2, stderr=f"larder: {message}")


@pytest.mark.regression
def test_show_does_not_merge(check: Check, write: Write) -> None:
    recipe = write("# Mix", "serves: 2", "- Salt: 1 tsp", "- Egg: 1", "- salt: 1 tsp")
    check("show", recipe, stdout="Mix (serves 2)\n  Salt: 1 tsp\n  Egg: 1\n  salt: 1 tsp")
    check("scale", recipe, 4, stdout="Mix (serves 4)\n  Salt: 2 tsp\n  Egg: 2\n  salt: 2 tsp")
