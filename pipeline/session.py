"""Spark sessions: by `spark-defaults.conf` beside this file, wherever the driver runs.

Under spark-submit the JVM is there before this code, and has its settings from `--properties-file` and the command
line, so this code sets none.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from pipeline.settings import LakeFormat

__all__ = ["DEFAULTS", "DELTA_PACKAGE", "defaults", "local_session"]

DEFAULTS: Final = Path(__file__).with_name("spark-defaults.conf")
DELTA_PACKAGE: Final = "io.delta:delta-spark_2.13:4.0.0"
"""The release of Delta Lake for the pinned Spark."""

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def defaults() -> dict[str, str]:
    """The settings of `spark-defaults.conf`."""
    lines = (line.strip() for line in DEFAULTS.read_text().splitlines())
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return {key: value.strip() for key, value in pairs}


def local_session(
    name: str,
    master: str = "local[*]",
    lake_format: LakeFormat = LakeFormat.PARQUET,
    more: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session of this process, with `more` settings than the defaults; only this machine can reach it."""
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # which spark-submit sets
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(master)
        for key, value in {**_settings(lake_format), **(more or {})}.items():
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _settings(lake_format: LakeFormat) -> dict[str, str]:
    settings = defaults()
    if lake_format is LakeFormat.DELTA:
        settings |= _DELTA
        settings["spark.jars.packages"] += f",{DELTA_PACKAGE}"
    return settings
