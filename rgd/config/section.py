"""What every section of the process settings is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A group of settings; below each stands what it does."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
