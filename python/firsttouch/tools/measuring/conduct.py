"""Running an experiment, with a line on when, how long and beside what load."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable

from firsttouch.tools.measuring.report import Section


def conduct(run: Callable[[], Section], quick: bool) -> Section:
    """What `run` gives, its `how` filled in."""
    busy = os.getloadavg()[0]
    start = time.monotonic()
    section = run()
    took = time.monotonic() - start
    kind = "A quick run that shows only that the experiment works" if quick else "Measured in full"
    section.how = f"{kind}, {datetime.date.today().isoformat()}, in {took:.0f} s; "
    section.how += f"the load average was {busy:.2f} at the start."
    return section
