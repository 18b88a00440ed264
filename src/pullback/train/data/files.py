"""Rows from files, a part at a time: CSV, and Parquet, for which this is the door that pyarrow comes in by."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from pullback.core.convert import as_dtype
from pullback.core.tree import mapped
from pullback.errors import ArgumentError, DataError, MissingPackageError
from pullback.train.data.stages import Stage, flat, regrouped

ROWS = 256  # read at once where elements are asked for one by one
WORDS = {"true": True, "1": True, "false": False, "0": False}


def chosen(what: str, there: list[str], columns: Any, labels: list[str]) -> list[str]:
    """The columns that are read; all but the labels if none are named."""
    if twice := sorted({name for name in there if there.count(name) > 1}):
        raise DataError(f"{what}: the column names must differ, but {twice} come more than once. Give names=[...].")
    wanted = [name for name in there if name not in labels] if columns is None else list(columns)
    if missing := [name for name in [*wanted, *labels] if name not in there]:
        raise DataError(f"{what}: there is no column {', '.join(map(repr, missing))}. The columns are {there}.")
    return wanted


def with_label(columns: dict[str, Any], names: list[str], label: Any) -> Any:
    """A block as it is given to users: a dict of columns, beside the label if there is one."""
    features = {name: columns[name] for name in names}
    if label is None:
        return features
    return features, columns[label] if isinstance(label, str) else {name: columns[name] for name in label}


def labels_of(label: Any) -> list[str]:
    """The names of the columns that are labels."""
    return [] if label is None else [label] if isinstance(label, str) else list(label)


@dataclass(frozen=True)
class FileRows(Stage):
    """What files of rows have in common: they are read in blocks."""

    path: str
    columns: list[str]
    label: Any

    def __repr__(self) -> str:
        return os.path.basename(self.path)

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        for block in self._stream_blocks(epoch, start, ROWS):
            for i in range(len(flat(block)[0])):
                yield mapped(lambda x, i=i: x[i], block)


# ---- CSV


@dataclass(frozen=True, repr=False)
class Csv(FileRows):
    """The rows of a CSV file."""

    there: list[str]
    header: bool
    dtypes: dict[str, np.dtype[Any]]
    delimiter: str

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        with open(self.path, newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, delimiter=self.delimiter)
            rows = filter(None, lines)  # blank lines are none
            next(islice(rows, start + self.header, start + self.header), None)  # reads past them
            while group := self._next(rows, lines, size):
                columns = {name: self._column(name, group) for name in [*self.columns, *labels_of(self.label)]}
                yield with_label(columns, self.columns, self.label)

    def _next(self, rows: Iterator[list[str]], lines: Any, size: int) -> list[tuple[int, list[str]]]:
        group = []
        for row in islice(rows, size):
            if len(row) != len(self.there):
                raise DataError(
                    f"from_csv: {self!r}, line {lines.line_num}: expected {len(self.there)} cells, got {len(row)}."
                )
            group.append((lines.line_num, row))
        return group

    def _column(self, name: str, group: list[tuple[int, list[str]]]) -> Any:
        i, dtype = self.there.index(name), self.dtypes[name]
        cells = [row[i].strip() for _, row in group]
        if dtype.kind == "U":
            return np.array(cells, dtype)
        if dtype.kind == "f":
            cells = [cell or "nan" for cell in cells]
        try:
            return np.array([WORDS[cell.lower()] for cell in cells] if dtype.kind == "b" else cells, dtype)
        except (ValueError, KeyError, OverflowError):
            line, cell = next((n, cell) for (n, _), cell in zip(group, cells, strict=True) if not _reads(cell, dtype))
            raise DataError(
                f"from_csv: {self!r}, line {line}, column {name!r}: {cell!r} is not {dtype}. Give the column another "
                f"dtype, such as dtypes={{{name!r}: str}}, or leave it out with columns=[...]."
            ) from None


def _reads(cell: str, dtype: np.dtype[Any]) -> bool:
    try:
        return cell.lower() in WORDS if dtype.kind == "b" else bool(np.array([cell], dtype).size)
    except (ValueError, OverflowError):
        return False


def csv_rows(path: Any, columns: Any, label: Any, dtypes: Any, names: Any, delimiter: str, default: Any) -> Csv:
    """The rows of a CSV file, of which only the first line is read now."""
    path = os.fspath(path)
    with open(path, newline="", encoding="utf-8-sig") as file:
        first = next(filter(None, csv.reader(file, delimiter=delimiter)), None)
    if first is None:
        raise DataError(f"from_csv: {os.path.basename(path)} is empty.")
    there = [cell.strip() for cell in first] if names is None else list(names)
    if len(there) != len(first):
        raise DataError(f"from_csv: names has {len(there)} names, but the first line has {len(first)} cells: {first}.")
    wanted = chosen("from_csv", there, columns, labels_of(label))
    given = dtypes if isinstance(dtypes, dict) else dict.fromkeys(there, default if dtypes is None else dtypes)
    if unknown := [name for name in given if name not in there]:
        raise ArgumentError(f"from_csv: dtypes names {unknown}, but the columns are {there}.")
    kinds = {name: as_dtype(given.get(name, default), "from_csv") for name in there}
    if complex_ones := [name for name, dtype in kinds.items() if dtype.kind not in "fiubU"]:
        raise ArgumentError(f"from_csv: columns hold floats, integers, bools or text, not {kinds[complex_ones[0]]}.")
    return Csv(path, wanted, label, there, names is None, kinds, delimiter)


# ---- Parquet


@cache
def _door() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingPackageError(
            "Dataset.from_parquet needs pyarrow, which is not installed. Install it with: pip install pyarrow"
        ) from None
    return pyarrow.parquet


@dataclass(frozen=True, repr=False)
class Parquet(FileRows):
    """The rows of a Parquet file; of the file only the columns and row groups that are needed are read."""

    number: int

    def length(self) -> int:
        return self.number

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        return regrouped(self._blocks(start, size), size)

    def _blocks(self, start: int, size: int) -> Iterator[Any]:
        read = list(dict.fromkeys([*self.columns, *labels_of(self.label)]))
        with _door().ParquetFile(self.path) as file:
            group = 0
            while group < file.num_row_groups and file.metadata.row_group(group).num_rows <= start:
                start -= file.metadata.row_group(group).num_rows
                group += 1
            groups = range(group, file.num_row_groups)
            for part in file.iter_batches(batch_size=size, row_groups=list(groups), columns=read):
                left = part.slice(min(start, len(part)))
                start = max(0, start - len(part))
                if len(left):
                    columns = {name: self._column(name, left.column(name)) for name in read}
                    yield with_label(columns, self.columns, self.label)

    def _column(self, name: str, column: Any) -> Any:
        made = column.to_numpy(zero_copy_only=False)
        if made.dtype.kind == "O" and all(isinstance(x, str) for x in made):
            return made.astype(str)
        if made.dtype.kind not in "fiub" or (column.null_count and str(column.type) not in {"float", "double"}):
            empty = ", with empty cells" if column.null_count else ""
            raise DataError(
                f"from_parquet: {self!r}, column {name!r}: expected numbers, bools or text without empty cells, got "
                f"{column.type}{empty}. Leave it out with columns=[...], or fill it beforehand."
            )
        return made


def parquet_rows(path: Any, columns: Any, label: Any) -> Parquet:
    """The rows of a Parquet file, of which only the description is read now."""
    path = os.fspath(path)
    parquet = _door()
    try:
        with parquet.ParquetFile(path) as file:
            number, there = file.metadata.num_rows, list(file.schema_arrow.names)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        raise DataError(f"from_parquet: {os.path.basename(path)} cannot be read as Parquet: {error}") from None
    return Parquet(path, chosen("from_parquet", there, columns, labels_of(label)), label, number)
