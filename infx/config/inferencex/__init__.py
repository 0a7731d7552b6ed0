"""InferenceX's master configurations: read, checked, expanded to its own rows, and made native.

A fault that its validator refuses is an error, and nothing is planned; what it accepts and should
not is a warning beside the rows. `tree` reads, `schema` and `rules` refuse, `doubts` warns,
`expand` and `evals` make rows, `native` writes infx's own configurations.
"""
