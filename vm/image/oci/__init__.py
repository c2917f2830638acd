"""Images for containers (OCI and Docker): read, checked and merged without being unpacked."""
