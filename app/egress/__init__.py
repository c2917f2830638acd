"""What this user lets agents reach: rules, options, registries of this host, and all joined."""
