"""Trees and decisions: capture, change set, diff, merge, write-back. No screen, no machine."""
