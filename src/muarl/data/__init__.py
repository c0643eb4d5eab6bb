"""Data: expert dialogues for a cold start, their verification, and proofs of domains."""
