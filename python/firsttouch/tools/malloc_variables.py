"""The environment variables that configure a malloc."""

#: How their names begin: of glibc, mimalloc, the bundled jemalloc, tcmalloc and tbbmalloc.
PREFIXES = ("MALLOC_", "MIMALLOC_", "_RJEM_MALLOC_CONF", "TCMALLOC_", "TBB_MALLOC_")
