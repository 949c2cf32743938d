"""Consumer groups: membership, and the offsets that they commit."""
