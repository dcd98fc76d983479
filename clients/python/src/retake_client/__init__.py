"""A typed client of Retake's HTTP API."""

from .api import *  # noqa: F403
from .client import ApiError, Client, Conflict, Event

__all__ = ["ApiError", "Client", "Conflict", "Event"]
