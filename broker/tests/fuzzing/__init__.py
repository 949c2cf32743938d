"""Fuzz targets for atheris, which finds inputs by the branches they take.

    make fuzz MINUTES=5        all of them, one after the other; or: python -m fuzzing records --minutes 5

    connection.py   bytes of a client: frames, headers, messages
    records.py      batches of records
    recovery.py     the files of a log folder
    folders.py      where they keep files
    __main__.py     runs one of them

A target has `seeds`, good inputs to start from, and `check`, which raises when an input breaks the invariant at the
head of its module. What a run finds interesting is kept in `build/fuzz/TARGET` for the next one, an input that breaks
the invariant in `build/fuzz/TARGET-crash-*`: `python -m fuzzing TARGET FILE` runs that alone. `test_fuzz_targets.py`
checks the seeds and small changes to them with the other tests.
"""
