"""A result as readers get to see it: by our own terminal views and in our own page."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.cli.main import parser

if TYPE_CHECKING:
    from slop_code.attacks.attack import Attack
    from slop_code.attacks.seen import Verdict
    from slop_code.attacks.trial import Evaluator
    from slop_code.attacks.world import World

PRINTED = (["show"], ["show", "-v"], ["export", "--format", "markdown"])


def rendering(evaluator: Evaluator) -> Evaluator:
    """Adds what readers see to the verdict, where the attack is on them."""

    def evaluate(world: World, attack: Attack) -> Verdict:
        verdict = evaluator(world, attack)
        if attack.does is not Effect.RAW:
            return verdict
        place, page = str(world.out), world.folder / "report.html"
        printed = [called(*words, place) for words in PRINTED] + [called("show", place, "test_claim")]
        called("report", place, "-o", str(page))
        pages = page.read_text() + called("export", "--format", "junit", place)
        return replace(verdict, shown="".join(printed), page=pages)

    return evaluate


def called(*words: str) -> str:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as printed:
        arguments = parser().parse_args(words)
        assert arguments.run(arguments) == 0
        printed.flush()
        assert isinstance(printed.buffer, io.BytesIO)
        return printed.buffer.getvalue().decode()
