"""What several recipes need together."""

from amounts import Amount, quantity_text
from recipes import Ingredient
from units import Table, total

Needs = dict[str, list[Amount]]


def normal_name(name: str) -> str:
    return " ".join(name.lower().split())


def needs_of(ingredients: list[Ingredient], table: Table) -> Needs:
    mentioned: Needs = {}
    for each in ingredients:
        amounts = mentioned.setdefault(normal_name(each.name), [])
        if each.amount:
            amounts.append(each.amount)
    return {name: total(mentioned[name], table) for name in sorted(mentioned)}


def needs_lines(needs: Needs) -> list[str]:
    return [f"{name}: {' + '.join(map(str, amounts))}" if amounts else name for name, amounts in needs.items()]


def needs_records(needs: Needs) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "amounts": [{"quantity": quantity_text(each.quantity), "unit": each.unit} for each in amounts],
        }
        for name, amounts in needs.items()
    ]
