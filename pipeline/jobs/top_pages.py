"""Top pages: the most viewed pages of each window, told once, when the window is closed.

Streams cannot rank, as that takes all rows of a window. In append mode, though, a window comes whole and in one
micro-batch, so the micro-batch is ranked as a batch.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.jobs.counts import count_views

__all__ = ["count_pages", "rank"]


def count_pages(views: DataFrame, watermark_s: int, window_s: int) -> DataFrame:
    """Views of each page by window, for append mode."""
    counts = count_views(views, watermark_s, window_s).where(F.col("dimension") == "page")
    return counts.select("window_start_ms", F.col("value").alias("page"), "views")


def rank(closed: DataFrame, top: int) -> DataFrame:
    """Records for the topic of top pages: the key is the window, the value the `top` pages as JSON, most viewed first.

    Pages with as many views are in the order of their names, so that a repeat says the same.
    """
    order = Window.partitionBy("window_start_ms").orderBy(F.desc("views"), "page")
    page = F.struct("rank", "page", "views")
    return (
        closed.select("*", F.row_number().over(order).alias("rank"))
        .where(F.col("rank") <= top)
        .groupBy("window_start_ms")
        .agg(F.to_json(F.sort_array(F.collect_list(page))).alias("value"))
        .select(F.col("window_start_ms").cast("string").alias("key"), "value")
    )
