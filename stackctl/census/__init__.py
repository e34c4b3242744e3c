"""What judges a tree: verify, audit, and one rule per module in rules/."""
