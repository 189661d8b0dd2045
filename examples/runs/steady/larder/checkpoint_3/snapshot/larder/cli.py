"""The command line."""

from larder.cookbook import read_recipe
from larder.errors import InputError, UsageError
from larder.merge import Basket, Units, line_for
from larder.stock import Stock

VALUED = ["--units", "--servings", "--pantry"]


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
        options, files = self.parse("shop", argv, flags=["--json"], valued=VALUED)
        if not files:
            raise UsageError("shop needs at least one recipe")
        _, totals, stock = self.gather(files, options)
        if stock:
            totals = stock.lacking(totals)
        if stock and not totals and "--json" not in options:
            self.print("nothing to buy")
        else:
            self.print_list(totals, options)

    def do_cook(self, argv):
        options, files = self.parse("cook", argv, flags=["--take"], valued=VALUED, count=1)
        if "--pantry" not in options:
            raise UsageError("cook needs --pantry")
        (recipe,), totals, stock = self.gather(files, options)
        lacking = stock.lacking(totals)
        if lacking:
            self.print(f"{recipe.heading}: missing")
            for name, measures in lacking.items():
                self.print(f"  {line_for(name, measures)}")
            return 3
        if "--take" in options:
            stock.take(totals)
        self.print(f"{recipe.heading}: ready")
        return 0

    def gather(self, files, options):
        servings = self.servings(options["--servings"]) if "--servings" in options else None
        units = Units.read(options["--units"]) if "--units" in options else Units()
        stock = Stock(options["--pantry"], units) if "--pantry" in options else None
        basket, recipes = Basket(units), []
        for file in files:
            recipe = read_recipe(file)
            recipes.append(recipe.for_servings(servings) if servings else recipe)
            basket.add(recipes[-1])
        return recipes, basket.totals(), stock

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
