"""Names of the files in a folder that aiperf 0.13.0 wrote: the job waits for them, the analysis
reads them."""

from __future__ import annotations

__all__ = ["LOG", "RECORDS", "SUMMARY"]

SUMMARY = "profile_export_aiperf.json"
RECORDS = "profile_export.jsonl"
LOG = "logs/aiperf.log"
