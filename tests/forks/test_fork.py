"""os.fork: both processes continue at once, whatever other threads were doing."""

from tests.programs import ask


def test_freed_memory_is_not_copied_when_written_again() -> None:
    """Recycled as it was, it would cost a copy of every page; given back before the fork it costs none."""
    shared = ask("""
        import json, os
        ft.install(ft.pool(decay=None))
        array = np.ones(100 << 20, np.uint8)
        del array
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            with open("/proc/self/smaps_rollup") as file:
                rollup = dict(line.split(":") for line in file.read().splitlines()[1:])
            resident = int(rollup["Rss"].split()[0]) - int(rollup["Pss_File"].split()[0] if "Pss_File" in rollup else 0)
            os.write(writer, json.dumps(resident).encode())
            os._exit(0)
        os.wait()
        print(os.read(reader, 100).decode())
    """)
    assert shared < 80 << 10  # KiB: none of the 100 MiB
