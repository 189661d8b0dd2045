"""Text of source files: one encoding, one line end, and no character that only some parsers take for a line end."""

from __future__ import annotations

import pytest

from slop_code.quality.source_text import neutral_text


@pytest.mark.parametrize(
    "text", ["", "x = 1", "x = 1\n\n\ty = 'späte'\n", "#!/usr/bin/python\n# comment\nx = '\U0001f600'\n", "\0"]
)
def test_an_ordinary_text_stays_as_it_is(text):
    assert neutral_text(text.encode(), ".py") == text.encode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbfx\n", "x\n"),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"# \xff\n", "# \xff\n"),
        (b"# -*- coding: latin-1 -*-\n'\xe9\x85'\n", "# -*- codinG: latin-1 -*-\n'\xe9 '\n"),
        (b"\n# vim: fileencoding=cp1252 \x80\n", "\n# vim: filecodinG=cp1252 \u20ac\n".replace("filec", "fileenc")),
        (b"# coding: shift_jis\n# \xff\xff\n", "# codinG: shift_jis\n# \ufffd\ufffd\n"),
        (b"x = 1\n# coding: utf-7\n", "x = 1\n# coding: utf-7\n"),
        (b"# coding: unknown\n\xe9\n", "# codinG: unknown\n\xe9\n"),
    ],
)
def test_a_text_of_python_is_decoded_as_python_does(data, expected):
    assert neutral_text(data, ".py") == expected.encode()


@pytest.mark.parametrize(
    "encoding", ["utf-7", "utf-16", "unicode_escape", "raw_unicode_escape", "punycode", "hz", "cp037"]
)
def test_an_encoding_that_hides_code_has_no_text(encoding):
    assert neutral_text(f"# coding: {encoding}\nx = 1\n".encode(), ".py") is None


@pytest.mark.parametrize("separator", "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
def test_no_other_character_ends_a_line(separator):
    text = f"# a{separator * 3}b\nx = '{separator}'\n"

    assert neutral_text(text.encode(), ".py") == b"# a   b\nx = ' '\n"


def test_a_form_feed_before_a_line_takes_no_column():
    assert neutral_text(b"\x0cdef f():\n    return 1\n  \x0c\x0cx = 1\n", ".py") == (b"def f():\n    return 1\nx = 1\n")


def test_a_comment_of_javascript_ends_where_its_engine_ends_it():
    assert neutral_text("// a\u2028f()\u2029g()\x0b\n".encode(), ".js") == b"// a\nf()\ng() \n"


def test_the_directive_of_ast_grep_is_void():
    assert neutral_text(b"# ast-grep-ignore\nx = 1  # ast-grep-ignore: rule\n", ".py") == (
        b"# ast-grep-ignorE\nx = 1  # ast-grep-ignorE: rule\n"
    )
