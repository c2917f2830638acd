"""The credential broker of a session: what it is told, its process, and the keeper's side of it."""
