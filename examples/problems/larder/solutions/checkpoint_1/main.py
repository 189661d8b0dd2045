"""Recipes on the command line."""

import sys

from amounts import quantity_text
from recipes import LarderError, Recipe, WrongUse, read_recipe, scaled


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
    if command not in ("show", "scale"):
        raise WrongUse(f'unknown command "{command}"')
    words, as_json = split_options(rest)
    if len(words) != {"show": 1, "scale": 2}[command]:
        raise WrongUse(f"wrong number of arguments for {command}")
    if command == "show":
        return recipe_text(read_recipe(words[0]), as_json)
    servings = servings_of(words[1])
    return recipe_text(scaled(read_recipe(words[0]), servings), as_json)


def split_options(words: list[str]) -> tuple[list[str], bool]:
    plain = [word for word in words if not word.startswith("-") or word == "-"]
    options = [word for word in words if word.startswith("-") and word != "-"]
    for option in options:
        if option != "--json":
            raise WrongUse(f'unknown option "{option}"')
    return plain, bool(options)


def servings_of(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise WrongUse(f'servings must be a whole number above 0, not "{text}"')
    return int(text)


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
