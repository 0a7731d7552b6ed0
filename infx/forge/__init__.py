"""Git and GitHub: what a repository holds at its revisions, what its host knows of it."""
