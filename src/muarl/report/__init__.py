"""The report of a run: one HTML file that needs nothing but a browser."""

from muarl.report.page import write_report as write_report
