"""The program `assistants`: every operation of the API as a command, with options that follow from the client."""

import argparse
import datetime
import enum
import inspect
import itertools
import json
import os
import re
import sys
import typing
from collections.abc import Callable
from typing import Any
from uuid import UUID

import attrs
import httpx

from . import models
from .calls import ApiError, Pages, Resource
from .resources import Client
from .types import UNSET, Unset

ABOUT = """Calls the API, and prints each record as a line of JSON. The variable ASSISTANTS_API_KEY has the key,
and ASSISTANTS_URL the address of the API, without /api/v1. `assistants RESOURCE --help` lists its methods."""


def dashed(name: str) -> str:
    """Return the name of a command or an option."""
    return name.rstrip("_").replace("_", "-")


def one_type(hint: Any) -> Any:
    """Return the type of a parameter that need not be given. The first of several is the one in JSON."""
    types = [kind for kind in typing.get_args(hint) or [hint] if kind not in {Unset, type(None)}]
    return types[0]


def value(kind: Any) -> Callable[[str], Any]:
    """Return the function that reads a value of a type."""
    if kind is bool:
        return lambda text: bool(["false", "true"].index(text))
    if kind is datetime.date:
        return datetime.date.fromisoformat
    if kind is datetime.datetime:
        return datetime.datetime.fromisoformat
    reader: Callable[[str], Any] = kind if kind in {int, float, UUID} or issubclass(kind, enum.Enum) else str
    return reader


def member(hint: str) -> Callable[[str], Any]:
    """Return the function that reads a member of a body: text where it can be text, and JSON where it is that."""

    def read(text: str) -> Any:
        try:
            return text if "str" in hint.split(" | ") else json.loads(text)
        except ValueError:
            return text

    return read


def read_body(model: Any, given: argparse.Namespace, default: Any) -> Any:
    """Return the body that the options have, or the default one without any."""
    members = dict(given.body)
    members |= {key[5:]: value for key, value in vars(given).items() if key.startswith("body.") and value is not None}
    return default if default is UNSET and not members else model.from_dict(members)


def add_method(command: argparse.ArgumentParser, method: Callable[..., Any]) -> None:
    """Add the arguments of a method to its command."""
    used = models.MODULES.keys() & re.findall(r"\w+", str(method.__annotations__))
    hints = typing.get_type_hints(method, localns={model: getattr(models, model) for model in used})
    command.set_defaults(method=method, model=None, limit=None)
    if typing.get_origin(hints["return"]) is Pages:
        command.add_argument("--limit", type=int, help="the most records to print; without it, all are printed")
    for name, parameter in inspect.signature(method).parameters.items():
        kind = one_type(hints[name])
        if name == "body":
            command.set_defaults(model=kind)
            command.add_argument(
                "--body", type=json.loads, default={}, metavar="JSON", help="members of the body, as an object"
            )
            for field in attrs.fields(kind):
                if field.init:
                    place = f"body.{field.name.rstrip('_')}"
                    command.add_argument(
                        f"--{dashed(field.name)}", type=member(str(field.type)), metavar="VALUE", dest=place
                    )
        elif parameter.kind == inspect.Parameter.KEYWORD_ONLY:
            is_required = parameter.default is inspect.Parameter.empty
            command.add_argument(f"--{dashed(name)}", dest=name, type=value(kind), required=is_required, default=UNSET)
        else:
            command.add_argument(name, type=value(kind), metavar=name.upper())


def commands(client: Client, resource: str | None) -> argparse.ArgumentParser:
    """Return the parser, with the methods of one resource: reading them all would take longer than the request."""
    parser = argparse.ArgumentParser(prog="assistants", description=ABOUT)
    resources = parser.add_subparsers(required=True, metavar="RESOURCE")
    for name, group in vars(client).items():
        if not isinstance(group, Resource):
            continue
        methods = resources.add_parser(dashed(name)).add_subparsers(required=True, metavar="METHOD")
        if dashed(name) == resource:
            for verb, method in inspect.getmembers(group, inspect.ismethod):
                if not verb.startswith("_"):
                    about = str(method.__doc__).replace("%", "%%")
                    add_method(
                        methods.add_parser(dashed(verb), help=about.partition(". ")[0], description=about), method
                    )
    return parser


def main() -> None:
    """Call the operation of the command line."""
    address, key = (os.environ.get(name, "") for name in ("ASSISTANTS_URL", "ASSISTANTS_API_KEY"))
    with Client(address, key) as client:
        parser = commands(client, next(iter(sys.argv[1:]), None))
        given = parser.parse_args()
        if not address or not key:
            parser.error("the variables ASSISTANTS_URL and ASSISTANTS_API_KEY are not set")
        parameters = inspect.signature(given.method).parameters
        arguments = {name: getattr(given, name) for name in parameters if name != "body"}
        try:
            if given.model:
                arguments["body"] = read_body(given.model, given, parameters["body"].default)
            answer = given.method(**arguments)
            for record in itertools.islice(answer, given.limit) if isinstance(answer, Pages) else [answer]:
                print(json.dumps(record.to_dict(), ensure_ascii=False), flush=True)
        except KeyError as error:
            parser.error(f"{error} is missing")
        except (ApiError, TypeError, ValueError, httpx.TransportError) as error:
            sys.exit(f"assistants: {error}")
