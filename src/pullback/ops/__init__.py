"""The mathematics: one op, one statement."""
