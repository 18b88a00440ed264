"""Rows of CSV and Parquet files, read in blocks; the only module that imports pyarrow."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from pullback.core.convert import as_dtype
from pullback.core.tree import map_leaves
from pullback.errors import ArgumentError, DataError
from pullback.names.packages import import_package
from pullback.train.data.stages import Stage, flatten, regroup
from pullback.typing import DType

Label = str | Iterable[str] | None  # the column, or columns, that are labels
BLOCK_ROWS = 256  # read at once where elements are read one by one
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def choose_columns(
    subject: str, file_columns: list[str], columns: Iterable[str] | None, labels: list[str]
) -> list[str]:
    """Return the columns to read; all but the labels if none are named."""
    if twice := sorted({name for name in file_columns if file_columns.count(name) > 1}):
        raise DataError(f"{subject}: the column names must differ, but {twice} come more than once. Give names=[...].")
    chosen = [name for name in file_columns if name not in labels] if columns is None else list(columns)
    if missing := [name for name in [*chosen, *labels] if name not in file_columns]:
        raise DataError(
            f"{subject}: there is no column {', '.join(map(repr, missing))}. The columns are {file_columns}."
        )
    return chosen


def pair_with_label(columns: dict[str, Any], names: list[str], label: Label) -> Any:
    """Return a block as users get it: a dict of columns, in a pair with the label if there is one."""
    features = {name: columns[name] for name in names}
    if label is None:
        return features
    return features, columns[label] if isinstance(label, str) else {name: columns[name] for name in label}


def list_labels(label: Label) -> list[str]:
    """Return the names of the columns that are labels."""
    return [] if label is None else [label] if isinstance(label, str) else list(label)


@dataclass(frozen=True)
class FileSource(Stage):
    """The base of files of rows, which are read in blocks."""

    path: str
    columns: list[str]
    label: Label

    def __repr__(self) -> str:
        return os.path.basename(self.path)

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        for block in self._stream_blocks(epoch, start, BLOCK_ROWS):
            for i in range(len(flatten(block)[0])):
                yield map_leaves(lambda x, i=i: x[i], block)


# ---- CSV


@dataclass(frozen=True, repr=False)
class CsvSource(FileSource):
    """The rows of a CSV file."""

    file_columns: list[str]
    header: bool
    dtypes: dict[str, np.dtype[Any]]
    delimiter: str

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        with open(self.path, newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, delimiter=self.delimiter)
            rows = filter(None, lines)  # skips blank lines
            next(islice(rows, start + self.header, start + self.header), None)  # skips the header and the first rows
            while group := self._read_group(rows, lines, size):
                columns = {
                    name: self._convert_column(name, group) for name in [*self.columns, *list_labels(self.label)]
                }
                yield pair_with_label(columns, self.columns, self.label)

    def _read_group(self, rows: Iterator[list[str]], lines: Any, size: int) -> list[tuple[int, list[str]]]:
        group = []
        for row in islice(rows, size):
            if len(row) != len(self.file_columns):
                raise DataError(
                    f"from_csv: {self!r}, line {lines.line_num}: expected {len(self.file_columns)} cells, "
                    f"got {len(row)}."
                )
            group.append((lines.line_num, row))
        return group

    def _convert_column(self, name: str, group: list[tuple[int, list[str]]]) -> Any:
        i, dtype = self.file_columns.index(name), self.dtypes[name]
        cells = [row[i].strip() for _, row in group]
        if dtype.kind == "U":
            return np.array(cells, dtype)
        if dtype.kind == "f":
            cells = [cell or "nan" for cell in cells]
        try:
            return np.array([BOOLEANS[cell.lower()] for cell in cells] if dtype.kind == "b" else cells, dtype)
        except (ValueError, KeyError, OverflowError):
            line, cell = next(
                (n, cell) for (n, _), cell in zip(group, cells, strict=True) if not _is_readable(cell, dtype)
            )
            raise DataError(
                f"from_csv: {self!r}, line {line}, column {name!r}: {cell!r} is not {dtype}. Give the column another "
                f"dtype, such as dtypes={{{name!r}: str}}, or leave it out with columns=[...]."
            ) from None


def _is_readable(cell: str, dtype: np.dtype[Any]) -> bool:
    try:
        return cell.lower() in BOOLEANS if dtype.kind == "b" else bool(np.array([cell], dtype).size)
    except (ValueError, OverflowError):
        return False


def open_csv(
    path: str | os.PathLike[str],
    columns: Iterable[str] | None,
    label: Label,
    dtypes: DType | Mapping[str, DType] | None,
    names: Iterable[str] | None,
    delimiter: str,
    default: np.dtype[Any],
) -> CsvSource:
    """Return the rows of a CSV file; only its first line is read now."""
    path = os.fspath(path)
    with open(path, newline="", encoding="utf-8-sig") as file:
        first = next(filter(None, csv.reader(file, delimiter=delimiter)), None)
    if first is None:
        raise DataError(f"from_csv: {os.path.basename(path)} is empty.")
    file_columns = [cell.strip() for cell in first] if names is None else list(names)
    if len(file_columns) != len(first):
        raise DataError(
            f"from_csv: names has {len(file_columns)} names, but the first line has {len(first)} cells: {first}."
        )
    chosen = choose_columns("from_csv", file_columns, columns, list_labels(label))
    dtype_of = (
        dtypes if isinstance(dtypes, dict) else dict.fromkeys(file_columns, default if dtypes is None else dtypes)
    )
    if unknown := [name for name in dtype_of if name not in file_columns]:
        raise ArgumentError(f"from_csv: dtypes names {unknown}, but the columns are {file_columns}.")
    kinds = {name: as_dtype(dtype_of.get(name, default), "from_csv") for name in file_columns}
    if complex_ones := [name for name, dtype in kinds.items() if dtype.kind not in "fiubU"]:
        raise ArgumentError(f"from_csv: columns hold floats, integers, bools or text, not {kinds[complex_ones[0]]}.")
    return CsvSource(path, chosen, label, file_columns, names is None, kinds, delimiter)


# ---- Parquet


def _import_parquet() -> Any:
    return import_package("pyarrow.parquet", "Dataset.from_parquet needs pyarrow", "pyarrow")


@dataclass(frozen=True, repr=False)
class ParquetSource(FileSource):
    """The rows of a Parquet file; only the needed columns and row groups are read."""

    number: int

    def find_length(self) -> int:
        return self.number

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        return regroup(self._read_blocks(start, size), size)

    def _read_blocks(self, start: int, size: int) -> Iterator[Any]:
        read = list(dict.fromkeys([*self.columns, *list_labels(self.label)]))
        with _import_parquet().ParquetFile(self.path) as file:
            group = 0
            while group < file.num_row_groups and file.metadata.row_group(group).num_rows <= start:
                start -= file.metadata.row_group(group).num_rows
                group += 1
            groups = range(group, file.num_row_groups)
            for part in file.iter_batches(batch_size=size, row_groups=list(groups), columns=read):
                left = part.slice(min(start, len(part)))
                start = max(0, start - len(part))
                if len(left):
                    columns = {name: self._convert_column(name, left.column(name)) for name in read}
                    yield pair_with_label(columns, self.columns, self.label)

    def _convert_column(self, name: str, column: Any) -> Any:
        array = column.to_numpy(zero_copy_only=False)
        if array.dtype.kind == "O" and all(isinstance(x, str) for x in array):
            return array.astype(str)
        if array.dtype.kind not in "fiub" or (column.null_count and str(column.type) not in {"float", "double"}):
            empty = ", with empty cells" if column.null_count else ""
            raise DataError(
                f"from_parquet: {self!r}, column {name!r}: expected numbers, bools or text without empty cells, got "
                f"{column.type}{empty}. Leave it out with columns=[...], or fill it beforehand."
            )
        return array


def open_parquet(path: str | os.PathLike[str], columns: Iterable[str] | None, label: Label) -> ParquetSource:
    """Return the rows of a Parquet file; only its metadata is read now."""
    path = os.fspath(path)
    parquet = _import_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            number, file_columns = file.metadata.num_rows, list(file.schema_arrow.names)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        raise DataError(f"from_parquet: {os.path.basename(path)} cannot be read as Parquet: {error}") from None
    return ParquetSource(path, choose_columns("from_parquet", file_columns, columns, list_labels(label)), label, number)
