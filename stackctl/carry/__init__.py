"""What changes a tree: apply, replant, the transaction and its journal."""
