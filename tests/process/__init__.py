"""install() and uninstall(): the allocator of the whole process."""
