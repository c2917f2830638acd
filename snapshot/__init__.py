"""Trees and decisions: snapshot of a workspace, change set, diff, merge, write-back. No screen, no machine."""
