"""What a bundle is gathered from: a branch, runs of a store, their evidence."""
