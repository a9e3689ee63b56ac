using FirstTouch: bytes_option, format_bytes

@test format_bytes(0) == "0 B"
@test format_bytes(1536) == "1.5 KiB"
@test format_bytes(5 << 30) == "5 GiB"
@test bytes_option("size", "1.5 GiB") == 3 << 29
@test bytes_option("size", "4 GB") == 4 * 10^9
@test bytes_option("size", "1_000") == 1000
@test bytes_option("size", 65536) == 65536
@test bytes_option("size", 1e9) == 10^9
