"""The CPU back end of mono: a layer as one call that numba compiled, and the same stages apart."""
