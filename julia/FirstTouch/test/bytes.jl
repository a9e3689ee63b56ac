using FirstTouch: format_bytes, parse_bytes

@test format_bytes(0) == "0 B"
@test format_bytes(1536) == "1.5 KiB"
@test format_bytes(5 << 30) == "5 GiB"
@test parse_bytes("1.5 GiB") == 3 << 29
@test parse_bytes("4 GB") == 4 * 10^9
@test parse_bytes(65536) == 65536
@test_throws ArgumentError parse_bytes("4 gigs")
@test_throws ArgumentError parse_bytes("99999999999 TiB")
@test_throws ArgumentError parse_bytes("-1")
@test_throws ArgumentError parse_bytes(-1)
