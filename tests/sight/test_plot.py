"""ft.inspection.plot_pagemap: every state that occurs is visible."""

import sys

import numpy as np
import pytest

import firsttouch as ft
from firsttouch.inspection.drawing import COLUMNS, LOOKS, ROWS, image
from tests.sight.conftest import PAGE, fresh

pytestmark = pytest.mark.quick

ORDER = list(LOOKS)


def drawn(states: list[int]) -> set[ft.inspection.PageState]:
    return {ORDER[place] for place in np.unique(image(np.array(states, np.uint8), ORDER)).tolist()}


def test_all_states_have_a_look() -> None:
    assert set(LOOKS) == set(ft.inspection.PageState)
    assert len(set(LOOKS.values())) == len(LOOKS)


def test_few_pages_are_columns() -> None:
    found = image(np.array([0, 2, 0], np.uint8), ORDER)
    assert found.shape == (ROWS, 3)
    assert [ORDER[place] for place in found[0]] == [
        ft.inspection.PageState.ABSENT,
        ft.inspection.PageState.SMALL,
        ft.inspection.PageState.ABSENT,
    ]


def test_one_page_among_many_is_seen() -> None:
    assert drawn([0] * 10**6 + [2] + [0] * 10**6) == {ft.inspection.PageState.ABSENT, ft.inspection.PageState.SMALL}


def test_shares() -> None:
    found = image(np.tile(np.array([0, 2, 2, 2], np.uint8), 10**5), ORDER)
    assert found.shape == (ROWS, COLUMNS)
    share = (found == ORDER.index(ft.inspection.PageState.SMALL)).mean()
    assert abs(share - 0.75) < 0.02
    assert (found[-1] == ORDER.index(ft.inspection.PageState.SMALL)).all()  # real ones fill it from below


def test_all_at_once() -> None:
    assert drawn(list(range(9)) * 10**4) == set(ft.inspection.PageState)


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib.*firsttouch\[plot\]"):
        ft.inspection.plot_pagemap(np.zeros(3))


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="needs an array"):
        ft.inspection.plot_pagemap()
    with pytest.raises(ValueError, match="one for each of the 1 moments"):
        ft.inspection.plot_pagemap(np.zeros(3), labels=["a", "b"])


def test_a_picture() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    array = fresh(100)
    before = ft.pagemap(array)
    array[: 30 * PAGE] = 1
    ax = ft.inspection.plot_pagemap(before, array)
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["before", "400 KiB not there yet", "after", "280 KiB not there yet, 120 KiB small pages"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["small pages", "not there yet"]
    assert len(ax.images) == 2
    ax.figure.canvas.draw()
    assert ft.inspection.plot_pagemap(np.empty(0), ax=ax) is ax
    assert ft.inspection.plot_pagemap(array, array, array, labels=["a", "b", "c"]).texts[4].get_text() == "c"
