"""Messages that are stored instead of sent: keys and values of records, and what consumers put into a group's members.

Each starts with its version, an int16, which `versioned` writes and reads.
"""
