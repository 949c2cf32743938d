"""What the jobs compute: one module each, of functions from DataFrame to DataFrame.

They know nothing of topics, files, checkpoints or databases (`streams.py` does), so they are tested on a few rows, run
on streams and on batches alike, and are the part to change for another use.

    landing.py       each event once                             dropDuplicatesWithinWatermark
    dead_letters.py  what is no event, with the reason           -
    counts.py        views by window, page and country           window
    top_pages.py     the most viewed pages of closed windows     window, append mode, rank in foreachBatch
    sessions.py      what a user did without a long pause        session_window
    conversions.py   clicks with the view that caused them       stream-stream join
    spend.py         what clicks cost, by the users' profiles    stream-static join with a compacted topic
"""
