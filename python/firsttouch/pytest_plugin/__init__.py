"""The modes of ``pytest --firsttouch``, which ``_firsttouch_start.pytest_entry`` starts."""
