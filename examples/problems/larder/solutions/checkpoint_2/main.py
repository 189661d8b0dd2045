"""Recipes on the command line."""

import sys

from amounts import quantity_text
from arguments import Arguments, parse_arguments, servings_of
from recipes import LarderError, Recipe, WrongUse, read_recipe, scaled
from shopping import needs_lines, needs_of, needs_records
from units import read_table


def main(argv: list[str]) -> int:
    try:
        print(run(argv))
    except LarderError as error:
        print(f"larder: {error}", file=sys.stderr)
        return error.status
    return 0


def run(argv: list[str]) -> str:
    if not argv:
        raise WrongUse("no command")
    command, *rest = argv
    if command not in COMMANDS:
        raise WrongUse(f'unknown command "{command}"')
    return COMMANDS[command](parse_arguments(command, rest))


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
    servings = arguments.servings
    table = read_table(arguments.values["--units"]) if "--units" in arguments.values else {}
    recipes = [read_recipe(file) for file in arguments.words]
    if servings:
        recipes = [scaled(recipe, servings) for recipe in recipes]
    needs = needs_of([each for recipe in recipes for each in recipe.ingredients], table)
    return json_text(needs_records(needs)) if "--json" in arguments.flags else "\n".join(needs_lines(needs))


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
