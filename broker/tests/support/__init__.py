"""What several tests need: a client that speaks single requests, and batches that are wrong in a chosen way."""
