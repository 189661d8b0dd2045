#!/usr/bin/env python3
"""larder - recipes, shopping lists and the pantry."""
import json
import re
import sys
from fractions import Fraction

# shared by recipes, units and pantry
ENTRY_RE = re.compile(r"^(?P<name>[^:]+?)\s*(?::\s*(?P<amount>.*))?$")
AMOUNT_RE = re.compile(r"^(?P<number>\d+\s+\d+/\d+|\d+(?:[./]\d+)?)\s*(?P<unit>[A-Za-z]*)$")


def die(message, code=1):
    print("larder: " + message, file=sys.stderr)
    sys.exit(code)


def parse_amount(text):
    """Return (Fraction, unit) or None."""
    m = AMOUNT_RE.match(text)
    if not m:
        return None
    try:
        quantity = sum(Fraction(p) for p in m.group("number").split())
    except ZeroDivisionError:
        return None
    if quantity <= 0:
        return None
    return quantity, m.group("unit")


def normalize(name):
    return " ".join(name.lower().split())


def parse_entry(text, where):
    """Read "NAME" or "NAME: AMOUNT"; return (normalized name, amount or None)."""
    m = ENTRY_RE.match(text.strip())
    if not m:
        die(where + 'cannot read "%s"' % text.strip())
    name = normalize(m.group("name"))
    if m.group("amount") is None:
        return name, None
    amount = parse_amount(m.group("amount"))
    if amount is None:
        die(where + 'bad amount "%s"' % m.group("amount"))
    return name, amount


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


def read_lines(path):
    """Return (number, line) pairs without blank lines and comments."""
    try:
        with open(path) as f:
            lines = f.read().splitlines()
    except OSError:
        die(path + ": no such file")
    pairs = [(n, line.strip()) for n, line in enumerate(lines, 1)]
    return [(n, line) for n, line in pairs if line and not line.startswith("//")]


def parse_recipe(path):
    recipe = {"title": None, "serves": None, "ingredients": []}
    for n, line in read_lines(path):
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
            recipe["ingredients"].append(parse_entry(line[2:], where))
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


def parse_units(path):
    """Return {unit: (factor, base)}."""
    units = {}
    for n, line in read_lines(path):
        unit, equals, value = line.partition("=")
        amount = parse_amount(value.strip())
        if not equals or amount is None:
            die('%s:%d: cannot read "%s"' % (path, n, line))
        units[unit.strip()] = amount
    return units


def merge_ingredients(recipes, units):
    """Return {name: {unit: quantity}} with everything added up."""
    merged = {}
    for recipe in recipes:
        for name, amount in recipe["ingredients"]:
            merged.setdefault(name, [])
            if amount is not None:
                merged[name].append(amount)
    for name, amounts in merged.items():
        totals = {}
        for q, unit in amounts:
            if unit in units:
                factor, unit = units[unit]
                q *= factor
            totals[unit] = totals.get(unit, 0) + q
        merged[name] = totals
    return merged


def print_shopping_list(merged, as_json):
    if as_json:
        out = []
        for name in sorted(merged):
            amounts = [{"quantity": format_quantity(q), "unit": u or None} for u, q in sorted(merged[name].items())]
            out.append({"name": name, "amounts": amounts})
        print(json.dumps(out))
        return
    for name in sorted(merged):
        parts = [format_amount((q, u)) for u, q in sorted(merged[name].items())]
        print(name + (": " + " + ".join(parts) if parts else ""))


def parse_pantry(path):
    """Return {name: (line number, spelling, amount or None)}."""
    pantry = {}
    for n, line in read_lines(path):
        where = "%s:%d: " % (path, n)
        name, amount = parse_entry(line, where)
        if name in pantry:
            die(where + '"%s" is listed twice' % name)
        pantry[name] = (n, line.split(":")[0].strip(), amount)
    return pantry


def convert(amount, unit, units):
    """The quantity in another unit, or None when the two cannot be compared."""
    q, own = amount
    if own == unit:
        return q
    own_factor, own_base = units.get(own, (1, own))
    factor, base = units.get(unit, (1, unit))
    if own_base != base:
        return None
    return q * own_factor / factor


def subtract_pantry(merged, pantry, units):
    missing = {}
    for name, totals in merged.items():
        if name not in pantry:
            missing[name] = totals
            continue
        held = pantry[name][2]
        if held is None:
            continue
        rest = {}
        for unit, q in totals.items():
            have = convert(held, unit, units)
            if have is None:
                rest[unit] = q
            elif q > have:
                rest[unit] = q - have
        if rest:
            missing[name] = rest
    return missing


def take_from_pantry(path, pantry, merged, units):
    with open(path) as f:
        lines = f.read().splitlines()
    for name, totals in merged.items():
        n, spelling, held = pantry[name]
        if held is None or not totals:
            continue
        q, unit = held
        for need_unit, need in totals.items():
            q -= convert((need, need_unit), unit, units)
        lines[n - 1] = "%s: %s" % (spelling, format_amount((q, unit))) if q else None
    with open(path, "w") as f:
        for line in lines:
            if line is not None:
                f.write(line + "\n")


def prepare(words, options):
    units = parse_units(options["--units"]) if "--units" in options else {}
    pantry = parse_pantry(options["--pantry"]) if "--pantry" in options else None
    recipes = [parse_recipe(word) for word in words]
    if "--servings" in options:
        servings = parse_servings(options["--servings"])
        recipes = [scale_recipe(recipe, servings) for recipe in recipes]
    return units, pantry, recipes, merge_ingredients(recipes, units)


def shop(words, options):
    if not words:
        die("shop needs at least one recipe", 2)
    units, pantry, _, merged = prepare(words, options)
    if pantry is not None:
        merged = subtract_pantry(merged, pantry, units)
        if not merged and "--json" not in options:
            print("nothing to buy")
            return
    print_shopping_list(merged, "--json" in options)


def cook(words, options):
    if len(words) != 1:
        die("wrong number of arguments for cook", 2)
    if "--pantry" not in options:
        die("cook needs --pantry", 2)
    units, pantry, recipes, merged = prepare(words, options)
    missing = subtract_pantry(merged, pantry, units)
    heading = "%s (serves %d)" % (recipes[0]["title"], recipes[0]["serves"])
    if not missing:
        if "--take" in options:
            take_from_pantry(options["--pantry"], pantry, merged, units)
        print(heading + ": ready")
        return
    print(heading + ": missing")
    for name in sorted(missing):
        parts = [format_amount((q, u)) for u, q in sorted(missing[name].items())]
        print("  " + name + (": " + " + ".join(parts) if parts else ""))
    sys.exit(3)


def main():
    args = sys.argv[1:]
    if not args:
        die("no command", 2)
    command = args.pop(0)
    if command not in ("show", "scale", "shop", "cook"):
        die('unknown command "%s"' % command, 2)
    options = {}
    words = []
    while args:
        arg = args.pop(0)
        if arg == "--json":
            options[arg] = True
        elif command == "cook" and arg == "--take":
            options[arg] = True
        elif command in ("shop", "cook") and arg in ("--units", "--servings", "--pantry"):
            if not args:
                die("option %s needs a value" % arg, 2)
            options[arg] = args.pop(0)
        elif arg.startswith("-") and arg != "-":
            die('unknown option "%s"' % arg, 2)
        else:
            words.append(arg)
    if command == "shop":
        return shop(words, options)
    if command == "cook":
        return cook(words, options)
    as_json = "--json" in options
    if len(words) != (1 if command == "show" else 2):
        die("wrong number of arguments for " + command, 2)
    if command == "show":
        print_recipe(parse_recipe(words[0]), as_json)
    else:
        servings = parse_servings(words[1])
        print_recipe(scale_recipe(parse_recipe(words[0]), servings), as_json)


if __name__ == "__main__":
    main()
