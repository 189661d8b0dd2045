"""The command line."""

from larder.cookbook import read_recipe
from larder.errors import InputError, UsageError
from larder.merge import Basket, Units, line_for


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

    def do_shop(self, argv):
        options, files = self.parse("shop", argv, flags=["--json"], valued=["--units", "--servings"])
        if not files:
            raise UsageError("shop needs at least one recipe")
        recipes = self.recipes(files, options)
        basket = Basket(next(recipes))
        for recipe in recipes:
            basket.add(recipe)
        self.print_list(basket.totals(), options)

    def recipes(self, files, options):
        """The table of units first, then each recipe for the servings that were asked for."""
        servings = self.servings(options["--servings"]) if "--servings" in options else None
        yield Units.read(options["--units"]) if "--units" in options else Units()
        for file in files:
            recipe = read_recipe(file)
            yield recipe.for_servings(servings) if servings else recipe

    def parse(self, command, argv, flags, valued=(), count=None):
        options, words = {}, []
        pending = iter(argv)
        for word in pending:
            if word in flags:
                options[word] = True
            elif word in valued:
                options[word] = next(pending, None)
                if options[word] is None:
                    raise UsageError(f"option {word} needs a value")
            elif word.startswith("-") and word != "-":
                raise UsageError(f'unknown option "{word}"')
            else:
                words.append(word)
        if count is not None and len(words) != count:
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

    def print_list(self, totals, options):
        if "--json" in options:
            self.print_json(
                [
                    {
                        "name": name,
                        "amounts": [{"quantity": one.number(), "unit": one.unit or None} for one in measures],
                    }
                    for name, measures in totals.items()
                ]
            )
            return
        for name, measures in totals.items():
            self.print(line_for(name, measures))

    def print(self, line):
        self.out.write(f"{line}\n")

    def print_json(self, value):
        import json

        self.print(json.dumps(value))
