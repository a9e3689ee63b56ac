"""The kinds of pages that experiments compare, and the allocator that has each."""

KINDS = {
    "np.zeros": "numpy_default()",
    "4 KiB pages": "pages()",
    "huge pages (THP)": 'pages(huge="thp")',
}
