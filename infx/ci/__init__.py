"""From a pull request's labels, comments and changelog entries to what is measured of it.

Pure functions over texts, parsed YAML and plans: only `infx.cli` asks git or reads files.
"""
