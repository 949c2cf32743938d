"""The cluster's metadata: where it is kept, its form on disk, and the picture of it that handlers read."""
