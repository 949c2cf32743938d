"""The relational sink: each micro-batch changes the database exactly once, however often Spark runs it.

A micro-batch that a kill cut off runs again with the same id and the same records. So the rows and the id are written
in one transaction:

    Spark's tasks     write the rows to a staging table, which each run of a micro-batch replaces
    the driver        in one transaction: INSERT the query's id and the batch's id into `batches`; where it is there
                      already, the batch was done; INSERT INTO table SELECT FROM staging ON CONFLICT: replace, or add

The query's id is the checkpoint's own: a new checkpoint starts with batch 0 again, and must not find the old one's.

SQLite and PostgreSQL, through JDBC. SQLite takes one writer at a time and a file that all tasks can reach, so it is for
one machine; its writers wait for each other by `busy_timeout`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

__all__ = ["BATCHES", "TABLES", "Table", "create_tables", "read_table", "sqlite_url", "upsert"]

_DRIVERS: Final = {"sqlite": "org.sqlite.JDBC", "postgresql": "org.postgresql.Driver"}


@dataclass(frozen=True)
class Table:
    """A table: `key` columns tell rows apart, `values` are replaced by what comes, or added to where `adds`."""

    name: str
    key: dict[str, str]
    values: dict[str, str]
    adds: bool = False

    def create(self) -> str:
        """The statement that makes the table where it is missing."""
        columns = ", ".join(f"{name} {kind}" for name, kind in {**self.key, **self.values}.items())
        return f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}, PRIMARY KEY ({', '.join(self.key)}))"

    def merge(self, staging: str) -> str:
        """The statement that takes the rows of `staging` in; `WHERE true` ends the SELECT for SQLite's parser."""
        columns = ", ".join([*self.key, *self.values])
        old = f"{self.name}.{{0}} + " if self.adds else ""
        changes = ", ".join(f"{name} = {old.format(name)}excluded.{name}" for name in self.values)
        return (
            f"INSERT INTO {self.name} ({columns}) SELECT {columns} FROM {staging} WHERE true"  # noqa: S608 - own names
            f" ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {changes}"
        )


BATCHES: Final = Table("batches", {"query_id": "TEXT", "batch_id": "BIGINT"}, {})
COUNTS: Final = Table(
    "counts", {"window_start_ms": "BIGINT", "dimension": "TEXT", "value": "TEXT"}, {"views": "BIGINT"}
)
SESSIONS: Final = Table(
    "sessions",
    {"user_id": "TEXT", "start_ms": "BIGINT"},
    {
        "end_ms": "BIGINT",
        "views": "BIGINT",
        "searches": "BIGINT",
        "clicks": "BIGINT",
        "first_page": "TEXT",
        "last_page": "TEXT",
    },
)
SPEND: Final = Table(
    "spend", {"country": "TEXT", "segment": "TEXT"}, {"clicks": "BIGINT", "cost_cents": "BIGINT"}, adds=True
)
TABLES: Final = (BATCHES, COUNTS, SESSIONS, SPEND)


def sqlite_url(path: str) -> str:
    """The JDBC URL of a SQLite file, with writers that wait for each other."""
    return f"jdbc:sqlite:{path}?journal_mode=WAL&synchronous=NORMAL&busy_timeout=60000"


def create_tables(spark: SparkSession, url: str, tables: Sequence[Table] = TABLES) -> None:
    """Create those of `tables` that are missing."""
    with _transaction(spark, url) as execute:
        for table in tables:
            execute(table.create())


def read_table(spark: SparkSession, url: str, name: str) -> DataFrame:
    """A table of the database."""
    return spark.read.format("jdbc").options(url=url, dbtable=name, driver=_driver(url)).load()


def upsert(url: str, table: Table) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that takes the rows of a micro-batch into `table` once."""
    staging = f"{table.name}_staging"
    driver = _driver(url)

    def write(batch: DataFrame, batch_id: int) -> None:
        spark = batch.sparkSession
        query_id = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        rows = batch.coalesce(1) if url.startswith("jdbc:sqlite:") else batch
        rows.write.format("jdbc").options(url=url, dbtable=staging, driver=driver).mode("overwrite").save()
        with _transaction(spark, url) as execute:
            done = f"INSERT INTO {BATCHES.name} VALUES ('{query_id}', {batch_id}) ON CONFLICT DO NOTHING"  # noqa: S608 - a uuid and a number
            if execute(done):
                execute(table.merge(staging))

    return write


def _driver(url: str) -> str:
    kind = url.split(":")[1]
    try:
        return _DRIVERS[kind]
    except KeyError:
        raise ValueError(f"database URL {url}: expected jdbc:{' or jdbc:'.join(_DRIVERS)}") from None


@contextmanager
def _transaction(spark: SparkSession, url: str) -> Iterator[Callable[[str], int]]:
    """A connection of the driver's; what it is given to execute (it returns how many rows changed) happens as one."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the driver's JDBC
    # Jars that came by name are known to Spark's class loader, which java.sql.DriverManager does not ask.
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    driver = loader.loadClass(_driver(url)).newInstance()
    connection = driver.connect(url, jvm.java.util.Properties())
    try:
        connection.setAutoCommit(False)
        statement = connection.createStatement()
        yield lambda sql: int(statement.executeUpdate(sql))
        connection.commit()
    finally:
        connection.close()  # rolls back what was not committed
