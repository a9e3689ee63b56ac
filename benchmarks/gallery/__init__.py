"""The gallery of the documentation: programs that people know, what `advise` says of them, and what `compare` measures.

`make gallery` runs the programs of docs/gallery and records what was said; the pages are rendered from that record.
sphinx-gallery is not used because it would repeat the measurements, for minutes, whenever the site is built.
"""
