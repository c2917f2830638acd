"""The terminal engine and the sandboxed process that runs it."""
