"""One module per plant kind: find, plant, judge."""
