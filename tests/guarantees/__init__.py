"""What a user can rely on: each test is named after a sentence of docs/explanation/guarantees.md."""
