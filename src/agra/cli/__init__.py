"""The command line: parse, call one function, print. Commands import what they need."""

import click

from agra.cli.data import data
from agra.cli.demo import demo
from agra.cli.encode import encode
from agra.cli.noise import noise


class _Commands(click.Group):
    """Commands that end with one line when they are interrupted."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(130)  # as shells expect of Ctrl-C


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="agra")
def main() -> None:
    """Learn from noisy labels: every sample is judged while the model trains."""


main.add_command(data)
main.add_command(demo)
main.add_command(noise)
main.add_command(encode)
