"""Checks a JSON value against the types of a vendor's own SDK: TypedDicts strictly (no missing key, no unknown key),
pydantic models by their own validation. Yields one sentence per problem, with its path."""

import collections.abc
import os
import types
import typing

import pydantic
import typing_extensions

WRAPPERS = (typing.Required, typing.NotRequired, typing.Annotated, typing_extensions.Required, typing_extensions.NotRequired)
LISTS = (list, collections.abc.Iterable, collections.abc.Sequence)


def problems(value, expected, place="body"):
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin in WRAPPERS:
        yield from problems(value, arguments[0], place)
    elif origin in (typing.Union, types.UnionType):
        branches = [list(problems(value, branch, place)) for branch in arguments]
        if all(branches):
            # In a union of objects only the closest branch gives a useful error.
            closest = min(branches, key=lambda found: (-max(depth(one) for one in found), len(found)))
            yield from closest
    elif origin is typing.Literal:
        if value not in arguments:
            yield f"{place} is {short(value)}, not one of {arguments}"
    elif typing_extensions.is_typeddict(expected):
        yield from in_typed_dict(value, expected, place)
    elif isinstance(expected, type) and issubclass(expected, pydantic.BaseModel):
        yield from in_model(value, expected, place)
    elif origin in LISTS or getattr(origin, "__name__", "") == "SequenceNotStr":
        if not isinstance(value, list):
            yield f"{place} is {short(value)}, not a list"
        else:
            for number, item in enumerate(value):
                yield from problems(item, arguments[0], f"{place}[{number}]")
    elif origin in (dict, collections.abc.Mapping):
        if not isinstance(value, dict):
            yield f"{place} is {short(value)}, not an object"
        else:
            for key, item in value.items():
                yield from problems(item, arguments[1], f"{place}.{key}")
    elif expected in (object, typing.Any):
        return
    elif origin is typing.IO or expected in (os.PathLike, bytes) or origin is os.PathLike:
        yield f"{place} is {short(value)}, and only an SDK can send a file"
    elif expected in (None, type(None)):
        if value is not None:
            yield f"{place} is {short(value)}, not null"
    elif expected is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            yield f"{place} is {short(value)}, not a number"
    elif isinstance(expected, type):
        if type(value) is not expected:
            yield f"{place} is {short(value)}, not {expected.__name__}"
    else:
        raise TypeError(f"{place}: this check does not know the type {expected!r}")


def in_typed_dict(value, expected, place):
    if not isinstance(value, dict):
        yield f"{place} is {short(value)}, not an object"
        return
    hints = typing_extensions.get_type_hints(expected, include_extras=True)
    for key in expected.__required_keys__ - value.keys():
        yield f"{place}.{key} is missing"
    for key, item in value.items():
        if key not in hints:
            yield f"{place}.{key} is unknown to {expected.__name__}"
        else:
            yield from problems(item, hints[key], f"{place}.{key}")


def in_model(value, expected, place):
    try:
        expected.model_validate(value)
    except pydantic.ValidationError as error:
        for one in error.errors():
            yield ".".join([place, *map(str, one["loc"])]) + ": " + one["msg"]


def depth(problem):
    place = problem.split(" ", 1)[0]
    return place.count(".") + place.count("[")


def short(value):
    text = repr(value)
    return text if len(text) < 60 else text[:60] + "…"
