"""CSV and Parquet: one row a test, read back by those who will read them."""

import csv
import importlib
import io
import sys
from dataclasses import replace

import pytest

from slop_code.errors import UsageError
from slop_code.reporting.exporters.csv_exporter import cell
from slop_code.reporting.exporters.export_rows import COLUMNS, rows
from slop_code.reporting.exporters.parquet_exporter import batches
from slop_code.runs.scb.agent_facts import AgentFacts


@pytest.fixture
def entries(make_entry, make_test):
    failed = make_test("test_b[ü]", "failed", failure_message='E   "no",\n1', group_type="Error", markers=[])
    return [
        make_entry(make_test(), failed, agent=AgentFacts(cost=0.25, steps=12, input=100)),
        make_entry(make_test(), checkpoint="checkpoint_2", reason="out of memory"),
        make_entry(checkpoint="checkpoint_3", gone="no snapshot"),
    ]


def test_one_row_a_test(entries):
    found = list(rows(entries))
    assert all(list(row) == list(COLUMNS) for row in found)
    assert [(row["checkpoint"], row["id"], row["status"], row["passed"]) for row in found] == [
        ("checkpoint_1", "test_a", "passed", True),
        ("checkpoint_1", "test_b[ü]", "failed", False),
        ("checkpoint_2", "test_a", "passed", False),
        ("checkpoint_3", None, None, False),
    ]
    assert [(row["state"], row["reason"]) for row in found[1:]] == [
        ("evaluated", None),
        ("infrastructure_failure", "out of memory"),
        ("not_evaluated", "no snapshot"),
    ]


def test_csv_is_read_back(entries, export):
    raw = export("csv", *entries)
    assert raw.startswith(b"run,problem,checkpoint,order,")
    assert raw.count(b"\r\n") == 5
    header, first, second, *_ = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), strict=True)
    assert header == list(COLUMNS)
    assert dict(zip(header, first, strict=True)) == {
        "run": "monday", "problem": "words", "checkpoint": "checkpoint_1", "order": "1", "state": "evaluated",
        "reason": "", "file": "test_checkpoint_1.py", "id": "test_a", "home": "checkpoint_1", "group": "Core",
        "markers": "slow parametrize", "status": "passed", "passed": "true", "quarantined": "false",
        "duration_ms": "1234.568", "message": "",
        "submission_digest": "5ub", "tests_digest": "7e5", "evaluation_version": "1-abc", "slop_code": "0.1.0",
        "strict_rate": "0.5", "isolated_rate": "0.5", "core_rate": "1.0",
        "agent_cost": "0.25", "agent_steps": "12", "agent_input": "100", "agent_output": "",
    }  # fmt: skip
    assert dict(zip(header, second, strict=True))["message"] == 'E   "no",\n1'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("a=1", "a=1"),
        (["=a", "b"], "'=a b"),
        ([], ""),
        (-1.5, -1.5),
        (False, "false"),
        (None, None),
    ],
)
def test_no_cell_is_a_formula(value, shown):
    assert cell(value) == shown


@pytest.fixture(scope="module")
def duckdb():
    """Large, as pandas is: loaded for those who ask for it."""
    return importlib.import_module("duckdb")


@pytest.fixture(scope="module")
def pd():
    return importlib.import_module("pandas")


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_pandas_and_duckdb_read_it_in_one_line(name, entries, export, tmp_path, duckdb, pd):
    path = tmp_path / f"results.{name}"
    path.write_bytes(export(name, *entries))
    frame = {"csv": pd.read_csv, "parquet": pd.read_parquet}[name](path)
    assert list(frame.columns) == list(COLUMNS)
    assert frame["passed"].dtype == bool
    assert frame.groupby("checkpoint")["passed"].mean().to_dict() == {
        "checkpoint_1": 0.5,
        "checkpoint_2": 0,
        "checkpoint_3": 0,
    }
    query = f"select checkpoint, count(status), sum(duration_ms) from '{path}' where passed group by all"
    assert duckdb.sql(query).fetchall() == [("checkpoint_1", 1, 1234.568)]


@pytest.mark.e2e
def test_parquet_has_types_and_keeps_text_as_it_is(export, make_entry, make_test, tmp_path, duckdb):
    path = tmp_path / "results.parquet"
    path.write_bytes(export("parquet", make_entry(make_test(status="failed", failure_message="=1+1"))))
    types = dict(duckdb.sql(f"select column_name, column_type from (describe select * from '{path}')").fetchall())
    assert types == {
        **dict.fromkeys(COLUMNS, "VARCHAR"),
        "order": "BIGINT", "passed": "BOOLEAN", "quarantined": "BOOLEAN", "duration_ms": "DOUBLE",
        "markers": "VARCHAR[]", "strict_rate": "DOUBLE", "isolated_rate": "DOUBLE", "core_rate": "DOUBLE",
        "agent_cost": "DOUBLE", "agent_steps": "BIGINT", "agent_input": "BIGINT", "agent_output": "BIGINT",
    }  # fmt: skip
    assert duckdb.sql(f"select message, markers from '{path}'").fetchall() == [("=1+1", ["slow", "parametrize"])]
    assert duckdb.sql(f"select distinct compression from parquet_metadata('{path}')").fetchall() == [("ZSTD",)]


@pytest.mark.e2e
@pytest.mark.parametrize(("order", "shown"), [(2**31, 2**31), (2**63 - 1, 2**63 - 1), (2**63, 2**63 - 1)])
def test_an_order_of_any_size_fits_its_column(order, shown, export, make_entry, make_test, tmp_path, duckdb):
    path = tmp_path / "results.parquet"
    path.write_bytes(export("parquet", make_entry(make_test(), order=order)))
    assert duckdb.sql(f"select \"order\" from '{path}'").fetchall() == [(shown,)]


def test_no_word_of_a_forged_result_is_a_command(export, make_entry, make_test):
    entry = make_entry(make_test())
    made, bad = entry.results.provenance, "\x1b]0;owned\x07"
    digests = made.digests.model_copy(update={"submission": bad, "tests": bad})
    forged = made.model_copy(update={"digests": digests, "evaluation_version": bad, "slop_code": bad})
    raw = export("csv", replace(entry, results=entry.results.model_copy(update={"provenance": forged})))
    assert (raw.count(b"\x1b"), raw.count(b"\\x1b]0;owned\\x07")) == (0, 4)


@pytest.mark.e2e
def test_no_runs_make_a_table_too(export, tmp_path, pd):
    assert export("csv").decode() == ",".join(COLUMNS) + "\r\n"
    path = tmp_path / "none.parquet"
    path.write_bytes(export("parquet"))
    assert pd.read_parquet(path).empty


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [([], []), ([0], [1]), ([0] * 7, [3, 3, 1]), ([50, 60, 10, 200, 1], [2, 2, 1]), ([None] * 3, [3])],
)
def test_batches_have_an_end(lengths, sizes):
    found = [{"message": None if length is None else "x" * length} for length in lengths]
    split = list(batches(found, max_rows=3, max_characters=100))
    assert [len(batch) for batch in split] == sizes
    assert [row for batch in split for row in batch] == found


@pytest.mark.e2e
def test_hostile_text_stays_text(hostile, export, tmp_path, pd):
    for name, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        path = tmp_path / name
        path.write_bytes(export(name, hostile))
        frame = read(path)
        assert len(frame) == 3
        assert list(frame["status"]) == ["failed", "error", "skipped"]
        assert "\\x1b]0;owned\\x07" in frame["message"][0]
        assert not any("\x1b" in str(value) or "\r" in str(value) for value in frame.to_numpy().flatten())


def test_parquet_is_not_for_terminals(make_entry):
    class Terminal(io.BytesIO):
        def isatty(self):
            return True

    out = Terminal()
    from slop_code.reporting.exporters.parquet_exporter import export

    with pytest.raises(UsageError, match="-o FILE"):
        export([make_entry(gone="x")], out, "any")
    assert out.getvalue() == b""


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch, export):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'slop-code\[parquet\]'"):
        export("parquet")
