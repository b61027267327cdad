"""What every section of the process settings is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")
