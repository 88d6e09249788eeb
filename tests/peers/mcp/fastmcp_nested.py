"""A typical fastmcp server with everything that is hard about schemas, results and stdout.

Nested models, recursion, a discriminated union, a name that providers refuse, scalar results (fastmcp wraps them), 20 MB
of text (fastmcp sends it twice), and print() where only messages belong.
"""

from typing import Annotated, Literal, Optional, Union

from fastmcp import FastMCP
from pydantic import BaseModel, Field

mcp = FastMCP("nested", version="1.2.3")


class Address(BaseModel):
    street: str
    zip: Annotated[str, Field(pattern=r"^\d{5}$")]


class Person(BaseModel):
    name: str
    address: Address
    friends: list["Person"] = []


class Card(BaseModel):
    kind: Literal["card"]
    number: str


class Invoice(BaseModel):
    kind: Literal["invoice"]
    days: int = 14


class Node(BaseModel):
    value: int
    children: list["Node"] = []


@mcp.tool
def greet(person: Person, loud: bool = False) -> str:
    """Greet a person and count their friends, however deep."""
    def count(who):
        return sum(1 + count(friend) for friend in who.friends)

    text = f"Hello {person.name} of {person.address.street}, friend of {count(person)}"
    return text.upper() if loud else text


@mcp.tool
def pay(with_: Annotated[Union[Card, Invoice], Field(discriminator="kind")], note: Optional[str] = None) -> dict:
    """Pay by card or by invoice."""
    return {"paid": with_.kind, "note": note}


@mcp.tool
def total(tree: Node) -> int:
    """Add up a tree."""
    return tree.value + sum(total(child) for child in tree.children)


@mcp.tool(name="weird.name/with-slash")
def weird() -> list[int]:
    """Has a name that model providers refuse."""
    return [1, 2, 3]


@mcp.tool
def large(megabytes: Annotated[int, Field(ge=1, le=20)]) -> str:
    """Answer with as many megabytes of text."""
    return "x" * (megabytes * 1_000_000)


@mcp.tool
def noisy() -> str:
    """Print to stdout, which is reserved for messages."""
    print("noisy was called", flush=True)
    return "quiet"


@mcp.tool
def fail() -> str:
    """Raise."""
    raise ValueError("the till is closed")


@mcp.tool
def undescribed(x: float = 0.5) -> float:
    return x * 2


print("nested starts", flush=True)
mcp.run(show_banner=False)
