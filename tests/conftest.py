"""Settings of the tests: which files are not tests, and how Hypothesis searches."""

from __future__ import annotations

import os

from hypothesis import settings

# What tests compile is of no use to anybody else; those of the cache have a directory of their own.
os.environ["PULLBACK_CACHE"] = "0"

# The judge of the parity tests is a program, not a place for doctests.
collect_ignore = ["parity/check.py", "parity/api_cases.py", "parity/README.md"]
# These are read by type checkers, not run.
collect_ignore += ["typing/mistakes.py", "typing/ordinary.py"]
# These change the library for the test suite of another project, which they are plugins of.
collect_ignore += ["interop/traced_array_api.py", "interop/autograd_alias.py"]
# What made the stored answers needs the libraries that gave them.
collect_ignore_glob = ["ops/data/*.py"]

# The same examples on every run, and no deadline: a busy machine is not a failure.
settings.register_profile("pullback", deadline=None, derandomize=True)
settings.load_profile("pullback")
