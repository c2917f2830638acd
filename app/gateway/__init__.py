"""The gateway as a process of its own: it has the guest's link and nothing of the session's."""
