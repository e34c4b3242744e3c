"""Exactness of entry 207: what its tests and its benchmark share."""
