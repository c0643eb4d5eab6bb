"""What the models say may stand at a path of a file: fields, and whether a mapping is a choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from muarl.spec.base import OneOf
from muarl.spec.document import is_tag
from muarl.spec.plugged import Plugged


class Shape:
    """Models and containers of which one describes the value at a path.

    Example:
        >>> sorted(Shape(RunSpec).below("model").kinds)
        ['path', 'tiny']
    """

    def __init__(self, *annotations: Any) -> None:
        self._annotations = annotations

    def below(self, part: str | int) -> Shape:
        """What may stand at a key or index of it."""
        return Shape(*(one for at in self._annotations for one in _step(at, part)))

    @property
    def fields(self) -> list[str]:
        """Keys that the mapping may have; empty if it is not a model's."""
        return [name for at in self._annotations for name in _keys(at)]

    @property
    def kinds(self) -> set[str]:
        """Keys of the mapping of which one is given, and says what it is; empty if it is no choice."""
        found: set[str] = set()
        for at in self._annotations:
            if _is_model(at) and issubclass(at, OneOf):
                found.update(at.kinds())
            elif _is_plugged(at):
                found.update(at.names())
        return found


def shape_at(model: type[BaseModel], loc: Iterable[str | int]) -> Shape:
    """What may stand at a path of a file, or of a model."""
    shape = Shape(model)
    for part in loc:
        shape = shape.below(part)
    return shape


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields by the keys they have in a file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _keys(annotation: Any) -> Iterable[str]:
    if _is_model(annotation):
        return _fields(annotation)
    return annotation.names() if _is_plugged(annotation) else ()


def _is_plugged(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Plugged)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _step(annotation: Any, part: str | int) -> Iterator[Any]:
    """Annotations of what lies at `part`, through unions and Annotated."""
    if is_tag(part):
        if annotation.__name__ == str(part)[1:-1]:
            yield annotation
    elif _is_model(annotation):
        if field := _fields(annotation).get(str(part)):
            yield from _options(field.annotation)
    elif _is_plugged(annotation):
        if model := annotation.model_of(str(part)):
            yield model
    elif get_origin(annotation) in (list, dict):
        yield from _options(get_args(annotation)[-1])


def _options(annotation: Any) -> Iterator[Any]:
    """The members of a union, or the annotation itself."""
    if get_origin(annotation) is Annotated:
        yield from _options(get_args(annotation)[0])
    elif _is_model(annotation) or _is_plugged(annotation) or get_origin(annotation) in (list, dict):
        yield annotation
    else:
        for member in get_args(annotation):
            yield from _options(member)
