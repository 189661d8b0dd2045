from slop_code.evaluation.result_files.evidence_files import EVIDENCE_FILES, remove_evidence


def test_evidence_of_an_earlier_evaluation_is_removed(tmp_path):
    top = tmp_path / ".scbench"
    for folder in (top, top / "1", top / "12", top / "1x"):
        folder.mkdir(parents=True)
        for name in EVIDENCE_FILES:
            (folder / name).touch()
    (top / "12" / "mine").touch()
    remove_evidence(tmp_path)
    left = sorted(str(path.relative_to(top)) for path in top.rglob("*"))
    assert left == ["12", "12/mine", "1x", *sorted(f"1x/{name}" for name in EVIDENCE_FILES)]
    remove_evidence(None)
