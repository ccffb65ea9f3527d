"""What several commands ask for, and how they check it."""

import math

import click


def number(ctx: click.Context, option: click.Parameter, value: float) -> float:
    """The value, unless it is not a number, which no range excludes."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a number.")
    return value
