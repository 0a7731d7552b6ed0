"""Running a plan: executors, and the loop that drives a run to its end."""
