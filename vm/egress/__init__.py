"""The guest's only network: a link whose far end is this process, which asks before it connects."""
