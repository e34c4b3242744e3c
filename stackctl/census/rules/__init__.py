"""Audit rules, one per module."""
