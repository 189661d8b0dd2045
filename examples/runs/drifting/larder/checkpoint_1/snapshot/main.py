#!/usr/bin/env python3
"""larder - show and scale recipes."""
import json
import re
import sys
from fractions import Fraction

AMOUNT_RE = re.compile(r"^(\d+\s+\d+/\d+|\d+/\d+|\d+\.\d+|\d+)\s*([A-Za-z]*)$")


def die(message, code=1):
    print("larder: " + message, file=sys.stderr)
    sys.exit(code)


def parse_amount(text):
    """Return (Fraction, unit) or None."""
    m = AMOUNT_RE.match(text)
    if not m:
        return None
    try:
        quantity = sum(Fraction(p) for p in m.group(1).split())
    except ZeroDivisionError:
        return None
    if quantity <= 0:
        return None
    return quantity, m.group(2)


def format_quantity(q):
    whole, rest = divmod(q, 1)
    if rest == 0:
        return str(whole)
    if whole == 0:
        return str(rest)
    return "%d %s" % (whole, rest)


def format_amount(amount):
    q, unit = amount
    return format_quantity(q) + (" " + unit if unit else "")


def read_file(path):
    if path == "-":
        return sys.stdin.read()
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        die(path + ": no such file")


def parse_recipe(path):
    recipe = {"title": None, "serves": None, "ingredients": []}
    for n, raw in enumerate(read_file(path).splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("//"):
            continue
        where = "%s:%d: " % (path, n)
        if recipe["title"] is None:
            if not line.startswith("# "):
                die(where + 'expected a title, found "%s"' % line)
            recipe["title"] = line[2:].strip()
        elif line.startswith("serves:"):
            value = line.split(":", 1)[1].strip()
            if not value.isdigit() or int(value) < 1:
                die(where + 'bad servings "%s"' % value)
            recipe["serves"] = int(value)
        elif line.startswith("- "):
            name, colon, value = line[2:].partition(":")
            amount = None
            if colon:
                amount = parse_amount(value.strip())
                if amount is None:
                    die(where + 'bad amount "%s"' % value.strip())
            recipe["ingredients"].append((name.strip(), amount))
        else:
            die(where + 'cannot read "%s"' % line)
    if recipe["title"] is None:
        die(path + ": no title")
    if recipe["serves"] is None:
        die(path + ": no servings")
    return recipe


def scale_recipe(recipe, servings):
    factor = Fraction(servings, recipe["serves"])
    scaled = []
    for name, amount in recipe["ingredients"]:
        if amount is not None:
            amount = (amount[0] * factor, amount[1])
        scaled.append((name, amount))
    return {"title": recipe["title"], "serves": servings, "ingredients": scaled}


def print_recipe(recipe, as_json):
    if as_json:
        ingredients = []
        for name, amount in recipe["ingredients"]:
            ingredients.append({
                "name": name,
                "quantity": format_quantity(amount[0]) if amount else None,
                "unit": (amount[1] or None) if amount else None,
            })
        print(json.dumps(dict(recipe, ingredients=ingredients)))
        return
    print("%s (serves %d)" % (recipe["title"], recipe["serves"]))
    for name, amount in recipe["ingredients"]:
        print("  " + name + (": " + format_amount(amount) if amount else ""))


def parse_servings(text):
    if not text.isdigit() or int(text) < 1:
        die('servings must be a whole number above 0, not "%s"' % text, 2)
    return int(text)


def main():
    args = sys.argv[1:]
    if not args:
        die("no command", 2)
    command = args.pop(0)
    if command not in ("show", "scale"):
        die('unknown command "%s"' % command, 2)
    as_json = False
    words = []
    for arg in args:
        if arg == "--json":
            as_json = True
        elif arg.startswith("-") and arg != "-":
            die('unknown option "%s"' % arg, 2)
        else:
            words.append(arg)
    if len(words) != (1 if command == "show" else 2):
        die("wrong number of arguments for " + command, 2)
    if command == "show":
        print_recipe(parse_recipe(words[0]), as_json)
    else:
        servings = parse_servings(words[1])
        print_recipe(scale_recipe(parse_recipe(words[0]), servings), as_json)


if __name__ == "__main__":
    main()
