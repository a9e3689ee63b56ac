"""Make a release: one version in every place, a dated section of the changelog, and then the tag."""
