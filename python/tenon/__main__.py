"""`python -m tenon SUBCOMMAND …`: the command, from the package."""

from __future__ import annotations

import sys

from ._library import run_command


def main() -> int:
    code, out, messages = run_command(*sys.argv[1:])
    sys.stdout.write(out)
    sys.stderr.write(messages)
    return code


if __name__ == "__main__":
    sys.exit(main())
