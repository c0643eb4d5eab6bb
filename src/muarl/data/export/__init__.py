"""Stored episodes in forms that others read: JSON lines, Parquet, Hugging Face datasets.

What a row holds does not depend on the form; `docs/records.md` describes every column.
"""
