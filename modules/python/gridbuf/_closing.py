"""What a `with` block leaves: the two methods that are always the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Closing"]


class Closing(ABC):
    """An object that a `with` block closes at its end."""

    __slots__ = ()

    @abstractmethod
    def _leave(self, failed: bool) -> None:
        """Called at the end of the block; `failed` says that an exception ends it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave(error is not None)
