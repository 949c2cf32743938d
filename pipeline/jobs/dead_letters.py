"""Dead letters: records that no job takes, as they came, with the reason and the place they came from as headers.

The key is that place, `TOPIC/PARTITION/OFFSET`: the sink writes at least once, and a repeat is told by its key.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["dead_letters"]


def dead_letters(parsed: DataFrame) -> DataFrame:
    """Records for the dead-letter topic, of what `events.parse` found at fault."""
    source = F.concat_ws("/", "topic", "partition", "offset")
    arrived = F.unix_millis("arrived").cast("string")
    headers = F.array(_header("fault", F.col("fault")), _header("source", source), _header("arrived-ms", arrived))
    return parsed.where(F.col("fault").isNotNull()).select(
        source.cast("binary").alias("key"), "value", headers.alias("headers")
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))
