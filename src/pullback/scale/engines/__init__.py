"""Engines: what runs workers. Each has the methods of ``protocol.Engine``."""
