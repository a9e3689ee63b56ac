"""install() and uninstall(), and who allocates: the whole process."""
