"""RecordBatch v2 (magic 2): `batch` the header, `build` and `read` the records inside, `compression` the codecs."""
