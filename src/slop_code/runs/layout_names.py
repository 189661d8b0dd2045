"""Names of files and folders in a run. Importing this is cheap, for commands that only show their options."""

LINES_FILE = "checkpoint_results.jsonl"
SUMMARY_FILE = "summary.json"
SNAPSHOT = "snapshot"
LAYOUT = f"<problem>/<checkpoint>/{SNAPSHOT}"
