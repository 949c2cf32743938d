"""What the log store raises besides BrokerError and OSError."""

from odradek_protocol.errors import BrokerError, Error

__all__ = ["LogFolderError", "RecordErrors"]


class RecordErrors(BrokerError):  # noqa: N818 - named for what it carries, which is several errors
    """A refused batch, with the records at fault as pairs of index in the batch and message (KIP-467)."""

    def __init__(self, error: Error, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(error, message)
        self.record_errors = record_errors


class LogFolderError(OSError):
    """One of `log.dirs` that this broker must not use; the message names the folder and says why."""
