"""Engines run workers: processes, Ray, Dask, or none. Each has the methods of ``protocol.Engine``."""
