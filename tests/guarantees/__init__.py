"""What a user can rely on: each test is named after a sentence of docs/explanation/guarantees.md.

The sentences that the contract says of every allocator are tested there (tests/contract).
"""
