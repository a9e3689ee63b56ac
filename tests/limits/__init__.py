"""Where memory is short: limits of the process, of a container, of the machine."""
