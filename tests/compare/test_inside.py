"""Whether firsttouch served a program, according to the reports of its processes."""

import json
from pathlib import Path
from typing import Any

import pytest

from firsttouch.tools.compare.trial import told

SERVED = {"pooled": True, "pool": {"allocations": 5}, "allocator": None, "numpy": "2", "not_pooled_because": None}
IDLE = SERVED | {"pool": {"allocations": 0}}
REFUSED = SERVED | {"pooled": False, "pool": None, "not_pooled_because": "no address space"}
WITHOUT = REFUSED | {"numpy": None, "not_pooled_because": None}


@pytest.mark.parametrize(
    ("reports", "failure", "remark"),
    [
        ([SERVED], None, None),
        ([WITHOUT, SERVED, IDLE], None, None),
        ([IDLE], None, "no request for a large block"),
        ([IDLE | {"allocator": "malloc()"}], None, None),
        ([REFUSED, WITHOUT], "not served: no address space", None),
        ([WITHOUT], None, "NumPy was never imported"),
        ([], None, "no process reported"),
        (["half a rep"], None, "no process reported"),
    ],
)
def test_reports(tmp_path: Path, reports: list[Any], failure: str | None, remark: str | None) -> None:
    for number, report in enumerate(reports):
        text = report if isinstance(report, str) else json.dumps(report)
        (tmp_path / f"{number}.json").write_text(text)
    found = told(tmp_path)
    assert found.failure == failure
    assert (found.remark is None) == (remark is None)
    assert (remark or "") in (found.remark or "")
