"""A Parquet file in memory, compressed as it grows."""

from io import BytesIO
from typing import Any

from rgd.analysis.schema import Columns, arrow


class ParquetBytes:
    """What `close` gives is the whole file."""

    def __init__(self, columns: Columns, **options: Any) -> None:
        """`options`: what else `pyarrow.parquet.ParquetWriter` shall know."""
        import pyarrow.parquet as pq

        self.rows = 0
        self._bytes = BytesIO()
        self._writer = pq.ParquetWriter(self._bytes, arrow(columns), compression="zstd", **options)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._bytes.tell()

    def add(self, rows: Any) -> None:
        """Add a `pyarrow.Table` as a row group."""
        self._writer.write_table(rows, max(1, rows.num_rows))
        self.rows += rows.num_rows

    def close(self) -> bytes:
        """The file."""
        self._writer.close()
        return self._bytes.getvalue()
