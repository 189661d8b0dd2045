"""Requirements in test_dependencies, compared with the parser of the package `packaging`."""

from __future__ import annotations

from typing import Annotated

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from pydantic import TypeAdapter, ValidationError

from slop_code.evaluation.problem.requirement import REQUIREMENT

DEPENDENCY = TypeAdapter(Annotated[str, REQUIREMENT])

REQUIREMENTS = [
    "a", "A.b_c-9", " a ", "a[x]", "a [ x , y.z ]", "a[]", "a>=1", "a >= 1 , < 2", "a (>=1,<2)", "a==1.*", "a~=1.4.2",
    "a!=1!2.0+local.1", "a===odd/1", "a @ https://host/a.whl", "a@file:///a.whl", "a[x] @ git+ssh://u@h/a@main#egg=a",
    "a; python_version < '3.13'", "a>=1;os_name=='nt' and (sys_platform != \"x\" or 'a' not in platform_machine)",
    "a @ https://host/a.whl ; extra == 'x'", "a;'3' in python_version",
]  # fmt: skip
LOCATIONS = ["./a", "../a b", "/a.whl", "vendor/a.whl", "https://host/a.whl", "git+https://host/a@v1"]
MALFORMED = [
    "", " ", "not a requirement!!", "a b", "a>=", "a=1", "a=>1", ">=1", "a,b", "a[x", "a (>=1", "a;",
    "a; python_version", "a; 3.11 and", "a @", "-e .", "-r other.txt", "-e ./a", "a # comment", "a!", "_a", "a-",
]  # fmt: skip


@pytest.mark.parametrize("text", [*REQUIREMENTS, *LOCATIONS])
def test_a_requirement_is_taken_as_it_is(text):
    assert DEPENDENCY.validate_python(text) == text
    if text in REQUIREMENTS:
        Requirement(text)


@pytest.mark.parametrize("text", MALFORMED)
def test_anything_else_is_refused(text):
    with pytest.raises(ValidationError, match="a requirement, such as"):
        DEPENDENCY.validate_python(text)
    with pytest.raises(InvalidRequirement):
        Requirement(text)
