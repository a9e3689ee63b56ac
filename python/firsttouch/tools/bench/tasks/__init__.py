"""What runs in the measured processes: each function measures one thing in the process it finds itself in."""
