"""What several commands ask for, and how they check it."""

import math

import click


def number(ctx: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """The value, if any, unless it is not a number, which no range excludes."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not a number.")
    return value
