"""Public benchmarks, faithfully: their tools, their rules of judgement, and what proves both.

A tool here answers and changes what the official one answers and changes, its known faults
included, so that a score is comparable with published ones. Upstream text and data are not here: the
importers read them from the checkout that a user has.
"""
