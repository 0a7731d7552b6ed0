# ruff: noqa: F821
# mypy: ignore-errors
"""What the last stage does for pads."""


@part
def clear_pads(step, stream_out, aux):
    for row in range(stream_out.size // HIDDEN):
        if step[row] < 0:
            row_of(stream_out, row)[:] = 0
            if TAPPED:
                row_of(aux, row)[:] = 0
