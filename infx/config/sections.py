"""What every section of a file shares: kebab-case keys, nothing unknown, and the types of text."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from infx.config.names import ENV_NAME, LINE, NAME
from infx.domain.axes import kebab

__all__ = ["Count", "Env", "Line", "Name", "Positive", "Section", "Text", "named"]

Name = Annotated[str, Field(pattern=NAME)]
Line = Annotated[str, Field(pattern=LINE)]
Text = Annotated[str, Field(min_length=1, pattern=LINE)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


def named(pattern: str, value: dict[str, Any]) -> WithJsonSchema:
    """Return the JSON Schema of a mapping whose keys match ``pattern``."""
    names = {"type": "string", "pattern": pattern}
    return WithJsonSchema({"type": "object", "propertyNames": names, "additionalProperties": value})


Env = Annotated[
    dict[Annotated[str, Field(pattern=ENV_NAME)], Line],
    named(ENV_NAME, {"type": "string", "pattern": LINE}),
]


class Section(BaseModel):
    """A mapping of a file: keys in kebab case, nothing unknown, no conversion of types."""

    model_config = ConfigDict(
        alias_generator=kebab, extra="forbid", strict=True, allow_inf_nan=False, frozen=True
    )
