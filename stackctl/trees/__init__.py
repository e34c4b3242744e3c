"""Where source comes from: a Git ref (no checkout needed), a folder, a PyPI release put into Git."""
