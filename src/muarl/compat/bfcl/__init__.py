"""BFCL multi-turn, versions 3 and 4: eight classes of functions, calls as Python text, the checker."""
