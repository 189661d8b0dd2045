"""Recipes on the command line."""

import sys

from amounts import quantity_text
from arguments import Arguments, parse_arguments, servings_of
from pantry import missing_from, read_pantry, take
from recipes import LarderError, Recipe, WrongUse, read_recipe, scaled
from shopping import needs_lines, needs_of, needs_records
from units import Table, read_table


def main(argv: list[str]) -> int:
    try:
        text, status = run(argv)
    except LarderError as error:
        print(f"larder: {error}", file=sys.stderr)
        return error.status
    print(text)
    return status


def run(argv: list[str]) -> tuple[str, int]:
    if not argv:
        raise WrongUse("no command")
    command, *rest = argv
    if command not in COMMANDS and command != "cook":
        raise WrongUse(f'unknown command "{command}"')
    arguments = parse_arguments(command, rest)
    return cook(arguments) if command == "cook" else (COMMANDS[command](arguments), 0)


def show(arguments: Arguments) -> str:
    if len(arguments.words) != 1:
        raise WrongUse("wrong number of arguments for show")
    return recipe_text(read_recipe(arguments.words[0]), "--json" in arguments.flags)


def scale(arguments: Arguments) -> str:
    if len(arguments.words) != 2:
        raise WrongUse("wrong number of arguments for scale")
    file, servings = arguments.words[0], servings_of(arguments.words[1])
    return recipe_text(scaled(read_recipe(file), servings), "--json" in arguments.flags)


def shop(arguments: Arguments) -> str:
    if not arguments.words:
        raise WrongUse("shop needs at least one recipe")
    servings, table = arguments.servings, table_of(arguments)
    pantry = read_pantry(arguments.values["--pantry"]) if "--pantry" in arguments.values else None
    recipes = [recipe_for(file, servings) for file in arguments.words]
    needs = needs_of([each for recipe in recipes for each in recipe.ingredients], table)
    if pantry:
        needs = missing_from(pantry, needs, table)
    if "--json" in arguments.flags:
        return json_text(needs_records(needs))
    return "\n".join(needs_lines(needs)) if needs or not pantry else "nothing to buy"


def cook(arguments: Arguments) -> tuple[str, int]:
    if len(arguments.words) != 1:
        raise WrongUse("wrong number of arguments for cook")
    if "--pantry" not in arguments.values:
        raise WrongUse("cook needs --pantry")
    file, servings, table = arguments.values["--pantry"], arguments.servings, table_of(arguments)
    pantry = read_pantry(file)
    recipe = recipe_for(arguments.words[0], servings)
    needs = needs_of(recipe.ingredients, table)
    missing = missing_from(pantry, needs, table)
    heading = f"{recipe.title} (serves {recipe.serves})"
    if missing:
        return "\n".join([f"{heading}: missing", *(f"  {line}" for line in needs_lines(missing))]), 3
    if "--take" in arguments.flags:
        take(file, pantry, needs, table)
    return f"{heading}: ready", 0


def table_of(arguments: Arguments) -> Table:
    return read_table(arguments.values["--units"]) if "--units" in arguments.values else {}


def recipe_for(file: str, servings: int | None) -> Recipe:
    recipe = read_recipe(file)
    return scaled(recipe, servings) if servings else recipe


def recipe_text(recipe: Recipe, as_json: bool) -> str:
    if as_json:
        return json_text(recipe_record(recipe))
    lines = [f"{recipe.title} (serves {recipe.serves})"]
    lines += [f"  {each.name}: {each.amount}" if each.amount else f"  {each.name}" for each in recipe.ingredients]
    return "\n".join(lines)


def json_text(value: object) -> str:
    import json  # here, because it takes longer to load than most commands take to run

    return json.dumps(value)


def recipe_record(recipe: Recipe) -> dict[str, object]:
    ingredients = [
        {
            "name": each.name,
            "quantity": quantity_text(each.amount.quantity) if each.amount else None,
            "unit": each.amount.unit if each.amount else None,
        }
        for each in recipe.ingredients
    ]
    return {"title": recipe.title, "serves": recipe.serves, "ingredients": ingredients}


COMMANDS = {"show": show, "scale": scale, "shop": shop}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
