"""Transactions: one state machine for each transactional id, its coordinator, and the markers that end it."""
