"""The pantry and what can be taken from it."""

from larder.cookbook import Source
from larder.measure import Measure
from larder.merge import plain_name


class Supply:
    def __init__(self, line, name, measure):
        self.line = line
        self.name = name
        self.measure = measure


class Stock:
    def __init__(self, file, units):
        self.units = units
        self.source = Source(file)
        self.supplies = {}
        for number, line in self.source.lines():
            supply = Supply(number, *self.source.item(line, number))
            key = plain_name(supply.name)
            if key in self.supplies:
                raise self.source.error(f'"{key}" is listed twice', number)
            self.supplies[key] = supply

    def lacking(self, totals):
        lacking = {}
        for name, measures in totals.items():
            if name not in self.supplies:
                lacking[name] = measures
                continue
            rest = [left for left in map(self.rest_for(name), measures) if left]
            if rest:
                lacking[name] = rest
        return lacking

    def rest_for(self, name):
        held = self.supplies[name].measure

        def rest(needed):
            if held is None:
                return None
            if self.units.base(held.unit) != self.units.base(needed.unit):
                return needed
            left = needed.value - self.units.convert(held, needed.unit).value
            return Measure(left, needed.unit) if left > 0 else None

        return rest

    def take(self, totals):
        lines = dict(enumerate(self.source.text.splitlines(keepends=True), 1))
        for name, measures in totals.items():
            supply = self.supplies[name]
            if not measures or supply.measure is None:
                continue
            held = supply.measure
            left = held.value - self.units.convert(measures[0], held.unit).value
            if left:
                lines[supply.line] = f"{supply.name}: {Measure(left, held.unit)}\n"
            else:
                del lines[supply.line]
        with open(self.source.name, "w", encoding="utf-8") as stream:
            stream.write("".join(lines.values()))
