"""One list of findings, many views."""
