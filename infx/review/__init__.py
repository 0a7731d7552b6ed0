"""The reviewer's checks 0–15, as pure functions over a bundle: what a pull request changes, what it
says, and what was measured for it."""
