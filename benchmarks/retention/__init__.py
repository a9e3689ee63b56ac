"""What rules of retention would have kept, and what would have been faulted in again, simulated on recorded traces."""
