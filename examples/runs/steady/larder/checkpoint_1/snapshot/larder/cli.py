"""The command line."""

from larder.cookbook import read_recipe
from larder.errors import InputError, UsageError


class Cli:
    def __init__(self, out, err):
        self.out = out
        self.err = err

    def main(self, argv):
        try:
            return self.dispatch(argv) or 0
        except InputError as error:
            self.err.write(f"larder: {error}\n")
            return error.code

    def dispatch(self, argv):
        if not argv:
            raise UsageError("no command")
        method = getattr(self, f"do_{argv[0]}", None)
        if method is None:
            raise UsageError(f'unknown command "{argv[0]}"')
        return method(argv[1:])

    def do_show(self, argv):
        options, (file,) = self.parse("show", argv, flags=["--json"], count=1)
        self.print_recipe(read_recipe(file), options)

    def do_scale(self, argv):
        options, (file, servings) = self.parse("scale", argv, flags=["--json"], count=2)
        servings = self.servings(servings)
        self.print_recipe(read_recipe(file).for_servings(servings), options)

    def parse(self, command, argv, flags, count):
        options, words = {}, []
        for word in argv:
            if word in flags:
                options[word] = True
            elif word.startswith("-") and word != "-":
                raise UsageError(f'unknown option "{word}"')
            else:
                words.append(word)
        if len(words) != count:
            raise UsageError(f"wrong number of arguments for {command}")
        return options, words

    def servings(self, text):
        if not (text.isascii() and text.isdigit() and int(text)):
            raise UsageError(f'servings must be a whole number above 0, not "{text}"')
        return int(text)

    def print_recipe(self, recipe, options):
        if "--json" in options:
            self.print_json(
                {
                    "title": recipe.title,
                    "serves": recipe.serves,
                    "ingredients": [
                        {
                            "name": name,
                            "quantity": measure.number() if measure else None,
                            "unit": (measure.unit or None) if measure else None,
                        }
                        for name, measure in recipe.items
                    ],
                }
            )
            return
        self.print(recipe.heading)
        for name, measure in recipe.items:
            self.print(f"  {name}: {measure}" if measure else f"  {name}")

    def print(self, line):
        self.out.write(f"{line}\n")

    def print_json(self, value):
        import json

        self.print(json.dumps(value))
