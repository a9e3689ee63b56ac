"""What runs in the workers: each function measures one thing in the process it finds itself in."""
