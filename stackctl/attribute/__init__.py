"""Whose failures are these: the merge's, or there before? The one part besides smoke that runs code of a tree."""
