"""Questions to an installed environment, asked by reading its files: nothing of it is imported or run."""
