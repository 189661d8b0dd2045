"""Results as readers see them: in our terminal views and in our HTML page."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.cli.main import parser

if TYPE_CHECKING:
    from slop_code.attacks.attack import Attack
    from slop_code.attacks.attack_host import AttackHost
    from slop_code.attacks.effects import ObservedVerdict
    from slop_code.attacks.trial import EvaluateAttack

PRINTED = (["show"], ["show", "-v"], ["export", "--format", "markdown"])


def with_rendered_results(evaluator: EvaluateAttack) -> EvaluateAttack:
    """Adds terminal text and page to the verdict of an attack on readers."""

    def evaluate(host: AttackHost, attack: Attack) -> ObservedVerdict:
        verdict = evaluator(host, attack)
        if attack.does is not Effect.RAW:
            return verdict
        output, page = str(host.output), host.folder / "report.html"
        printed = [called(*words, output) for words in PRINTED] + [called("show", output, "test_claim")]
        called("report", output, "-o", str(page))
        pages = page.read_text() + called("export", "--format", "junit", output)
        return replace(verdict, terminal="".join(printed), page=pages)

    return evaluate


def called(*words: str) -> str:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as printed:
        arguments = parser().parse_args(words)
        assert arguments.run(arguments) == 0
        printed.flush()
        assert isinstance(printed.buffer, io.BytesIO)
        return printed.buffer.getvalue().decode()
