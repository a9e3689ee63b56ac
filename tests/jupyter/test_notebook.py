"""A real notebook, executed in a kernel of its own."""

import pytest

from tests.neighbours.needs import needs
from tests.programs import environment

pytestmark = [needs("ipykernel"), needs("nbclient")]

CELLS = [
    "%load_ext firsttouch\nimport numpy as np",
    "%firsttouch pool",
    "%%firsttouch\nx = np.ones(1_000_000)\nx = x * 2 + 1",
    "%firsttouch stats",
    "x.sum()",
    "%firsttouch off",
]


def test_a_notebook_runs_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    import nbclient
    import nbformat

    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    new = nbformat.v4
    notebook = new.new_notebook(cells=[new.new_code_cell(text) for text in CELLS])
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert "serves NumPy's arrays" in outputs[1][0].text
    for shown, word in ((outputs[2][0].data, "first touched"), (outputs[3][0].data, "allocations")):
        assert word in shown["text/plain"]
        assert f'<th style="text-align:left">{word}</th>' in shown["text/html"]
    assert outputs[4][0].data["text/plain"] == "np.float64(3000000.0)"
    assert outputs[5][0].text == "NumPy's own memory serves NumPy's arrays\n"
