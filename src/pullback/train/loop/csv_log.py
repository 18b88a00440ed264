"""A CSV file that is written row by row, and can be continued."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping

from pullback.errors import DataError


class CsvFile:
    """Rows of numbers under a header, the first column being the epoch; flushed after each row.

    ``append`` continues an existing file; ``before`` removes its rows from this epoch on.
    """

    def __init__(self, path: str, separator: str, names: list[str], append: bool, before: int | None) -> None:
        self.path, self.names = path, names
        rows = self._read_kept_rows(separator, before) if append and os.path.exists(path) else []
        unfinished = f"{path}.unfinished"
        with open(unfinished, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows or [names])
        os.replace(unfinished, path)  # atomic: a crash does not lose the rows that are kept
        self._file = open(path, "a", newline="", encoding="utf-8")  # noqa: SIM115  # stays open between epochs
        self._writer = csv.writer(self._file, delimiter=separator, lineterminator="\n")

    def _read_kept_rows(self, separator: str, before: int | None) -> list[list[str]]:
        with open(self.path, newline="", encoding="utf-8") as file:
            text = file.read()
        complete = text[: text.rfind("\n") + 1]  # without a row that was cut off by a crash
        rows = [row for row in csv.reader(complete.splitlines(), delimiter=separator) if row]
        if rows and rows[0] != self.names:
            raise DataError(
                f"callbacks.csv_logger: '{os.path.basename(self.path)}' has the columns {', '.join(rows[0])}, but "
                f"there are {', '.join(self.names)} to write. Give another path, or append=False."
            )
        return [row for i, row in enumerate(rows) if i == 0 or before is None or int(row[0]) < before]

    def write(self, row: Mapping[str, float]) -> None:
        """Write one more row."""
        if missing := [name for name in self.names if name not in row]:
            raise DataError(f"callbacks.csv_logger: there is no {', '.join(map(repr, missing))} in this epoch's logs.")
        self._writer.writerow([row[name] for name in self.names])
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
