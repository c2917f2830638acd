"""The process that owns one session: its machine, change mirror, journal and merges."""
