"""The pantry: cooking from it and shopping around it."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Check = Callable[..., None]
Write = Callable[..., Path]

POOR_PANCAKES = "  egg: 1\n  flour: 1/2 cup\n  milk: 200 ml\n  salt"


@pytest.fixture
def full(pantries: Path, tmp_path: Path) -> Path:
    """A pantry of its own for a test that takes from it."""
    return Path(shutil.copy(pantries / "full.txt", tmp_path / "pantry.txt"))


def content_is(pantry: Path, text: str) -> None:
    __tracebackhide__ = True
    found = pantry.read_text(encoding="utf-8")
    if found != text:
        pytest.fail(f"the pantry file should hold:\n{text}\nfound:\n{found}")


def test_ready(check: Check, recipes: Path, write: Write) -> None:
    pantry = write("flour: 1.5 cup", "egg: 12", "milk: 300 ml", "salt")
    check("cook", "--pantry", pantry, recipes / "pancakes.txt", stdout="Pancakes (serves 4): ready")


def test_missing(check: Check, recipes: Path, pantries: Path) -> None:
    stdout = f"Pancakes (serves 4): missing\n{POOR_PANCAKES}"
    check("cook", "--pantry", pantries / "poor.txt", recipes / "pancakes.txt", code=3, stdout=stdout)


@pytest.mark.parametrize(("servings", "missing"), [(2, "  milk: 50 ml\n  salt"), (1, "  salt")])
def test_servings(check: Check, recipes: Path, pantries: Path, servings: int, missing: str) -> None:
    args = ["cook", recipes / "pancakes.txt", "--servings", servings, "--pantry", pantries / "poor.txt"]
    check(*args, code=3, stdout=f"Pancakes (serves {servings}): missing\n{missing}")


def test_take(check: Check, write: Write, recipes: Path) -> None:
    pantry = write("// shelf", "Flour: 2 cup", "egg: 2", "", "milk: 1000 ml", "salt", "rice: 0.50 kg")
    cook = ["cook", "--take", "--pantry", pantry, recipes / "pancakes.txt"]
    check(*cook, stdout="Pancakes (serves 4): ready")
    left = "// shelf\nFlour: 1/2 cup\n\nmilk: 700 ml\nsalt\nrice: 0.50 kg\n"
    content_is(pantry, left)
    check(*cook, code=3, stdout="Pancakes (serves 4): missing\n  egg: 2\n  flour: 1 cup")
    content_is(pantry, left)


def test_without_take_the_pantry_stays(check: Check, full: Path, recipes: Path) -> None:
    before = full.read_text(encoding="utf-8")
    omelette = [recipes / "omelette.txt", "--servings", 2]
    stdout = "Omelette (serves 2): missing\n  milk: 2 tbsp"
    check("cook", "--pantry", full, *omelette, code=3, stdout=stdout)
    content_is(full, before)


def test_shop_leaves_out_what_is_there(check: Check, recipes: Path, pantries: Path) -> None:
    args = ["shop", "--pantry", pantries / "poor.txt", recipes / "pancakes.txt"]
    check(*args, stdout="egg: 1\nflour: 1/2 cup\nmilk: 200 ml\nsalt")


@pytest.mark.functionality
class TestShopWithPantry:
    def test_nothing_to_buy(self, check: Check, recipes: Path, write: Write) -> None:
        pantry = write("FLOUR", "EGG: 2", "Milk: 300.0 ml", "salt: 1 tsp")
        check("shop", "--pantry", pantry, recipes / "pancakes.txt", stdout="nothing to buy")

    def test_json(self, run: Run, recipes: Path, pantries: Path) -> None:
        done = run("shop", "--json", "--pantry", pantries / "poor.txt", recipes / "pancakes.txt")
        assert done.returncode == 0, f"ran: {done.args}\n{done.stderr}"
        assert json.loads(done.stdout) == [
            {"name": "egg", "amounts": [{"quantity": "1", "unit": None}]},
            {"name": "flour", "amounts": [{"quantity": "1/2", "unit": "cup"}]},
            {"name": "milk", "amounts": [{"quantity": "200", "unit": "ml"}]},
            {"name": "salt", "amounts": []},
        ], f"ran: {done.args}"

    def test_what_cannot_be_compared_is_bought(self, check: Check, write: Write) -> None:
        recipe = write("# Mix", "serves: 1", "- egg: 2", "- egg: 100 g", "- egg: 1 cup", name="recipe.txt")
        pantry = write("egg: 60 g", name="pantry.txt")
        check("shop", "--pantry", pantry, recipe, stdout="egg: 2 + 1 cup + 40 g")


@pytest.mark.functionality
def test_endless_supplies(check: Check, write: Write, recipes: Path) -> None:
    pantry = write("flour", "  EGG  ", "milk", "salt: 1 tsp")
    cook = ["cook", "--take", "--pantry", pantry, recipes / "pancakes.txt"]
    check(*cook, "--servings", 4000, stdout="Pancakes (serves 4000): ready")
    content_is(pantry, "flour\n  EGG  \nmilk\nsalt: 1 tsp\n")


@pytest.mark.conversion
def test_take_in_the_unit_of_the_pantry(check: Check, full: Path, recipes: Path, units: Path) -> None:
    args = ["--take", "--units", units, "--pantry", full]
    check("cook", *args, recipes / "pancakes.txt", stdout="Pancakes (serves 4): ready")
    check("cook", *args, recipes / "omelette.txt", stdout="Omelette (serves 1): ready")
    content_is(
        full,
        "// top shelf\nflour: 3 1/2 cup\nEgg: 1\nmilk: 137/200 l\n\nSalt\nBlack  Pepper\nbutter: 240 g\n",
    )


@pytest.mark.conversion
@pytest.mark.parametrize(
    ("need", "held", "missing"),
    [
        ("1 cup", "15 tbsp", "1/16 cup"),
        ("1 l", "1 cup", "19/25 l"),
        ("1 cup", "200 g", "1 cup"),
    ],
)
def test_missing_is_in_the_unit_of_the_need(
    check: Check, write: Write, units: Path, need: str, held: str, missing: str
) -> None:
    recipe = write("# Mix", "serves: 1", f"- stuff: {need}", name="recipe.txt")
    pantry = write(f"stuff: {held}", name="pantry.txt")
    stdout = f"Mix (serves 1): missing\n  stuff: {missing}"
    check("cook", "--units", units, "--pantry", pantry, recipe, code=3, stdout=stdout)


@pytest.mark.error
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["flour: lots"], '1: bad amount "lots"'),
        (["flour: 1 cup", "// again", "Flour: 2 cup"], '3: "flour" is listed twice'),
    ],
)
def test_bad_pantry(check: Check, write: Write, recipes: Path, lines: list[str], message: str) -> None:
    pantry = write(*lines)
    stderr = f"larder: {pantry}:{message}"
    check("cook", "--pantry", pantry, recipes / "soup.txt", code=1, stderr=stderr)


@pytest.mark.error
def test_missing_pantry(check: Check, recipes: Path, tmp_path: Path) -> None:
    pantry = tmp_path / "empty-house.txt"
    stderr = f"larder: {pantry}: no such file"
    check("cook", "--pantry", pantry, recipes / "soup.txt", code=1, stderr=stderr)


@pytest.mark.error
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-"], "cook needs --pantry"),
        (["-", "--pantry"], "option --pantry needs a value"),
        (["--pantry", "-"], "wrong number of arguments for cook"),
    ],
)
def test_wrong_use(check: Check, args: list[str], message: str) -> None:
    check("cook", *args, code=2, stderr=f"larder: {message}")


@pytest.mark.regression
def test_shop_without_pantry_is_as_before(check: Check, recipes: Path, expected: Callable[[str], str]) -> None:
    files = [recipes / "pancakes.txt", recipes / "omelette.txt"]
    check("shop", *files, stdout=expected("shop_pancakes_omelette"))
