"""Package registries, learnt from pip, npm, apt, cargo and go of this host: none stands here."""
