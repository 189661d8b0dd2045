"""What is loaded into the judge's pytest; `plugin.py` is copied there and imports nothing from here."""
