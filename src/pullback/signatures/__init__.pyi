"""Signatures that type checkers and editors read; nothing here exists at run time."""
