"""Models of shed's DeadlineJob. The models are generated: clients/generate.sh."""

from .models import DeadlineJob

__all__ = ["DeadlineJob"]
