"""Adding up ingredients."""

from larder.cookbook import Source
from larder.measure import Measure


class Units:
    """Which units convert into which base."""

    def __init__(self):
        self.known = {}

    @classmethod
    def read(cls, file):
        units, source = cls(), Source(file)
        for number, line in source.lines():
            unit, _, definition = line.partition("=")
            unit = unit.strip()
            try:
                factor = Measure.parse(definition.strip())
            except ValueError:
                raise source.error(f'cannot read "{line}"', number) from None
            if not unit or not factor.unit:
                raise source.error(f'cannot read "{line}"', number)
            if unit in units.known:
                raise source.error(f'"{unit}" is defined twice', number)
            units.known[unit] = factor
        return units

    def base(self, unit):
        return self.known[unit].unit if unit in self.known else unit

    def factor(self, unit):
        return self.known[unit].value if unit in self.known else 1

    def convert(self, measure, unit):
        if measure.unit == unit:
            return measure
        return Measure(measure.value * self.factor(measure.unit) / self.factor(unit), unit)


class Basket:
    """Ingredients by name, each with its measures as they were added."""

    def __init__(self, units):
        self.units = units
        self.content = {}

    def add(self, recipe):
        for name, measure in recipe.items:
            measures = self.content.setdefault(plain_name(name), [])
            if measure:
                measures.append(measure)

    def totals(self):
        return {name: self.total(self.content[name]) for name in sorted(self.content)}

    def total(self, measures):
        sums = {}
        for measure in measures:
            base = self.units.base(measure.unit)
            if base not in sums:
                sums[base] = measure
                continue
            so_far = sums[base]
            target = so_far.unit if so_far.unit == measure.unit else base
            one, two = self.units.convert(so_far, target), self.units.convert(measure, target)
            sums[base] = Measure(one.value + two.value, target)
        return sorted(sums.values(), key=lambda measure: measure.unit)


def plain_name(name):
    return " ".join(name.split()).lower()


def line_for(name, measures):
    return f"{name}: {' + '.join(str(measure) for measure in measures)}" if measures else name
