"""Shared code of the checks in this folder: finding files, reading C++, reporting, built binaries."""

import argparse
import os
import re
import sys
from pathlib import Path

CODE = (".h", ".hpp", ".cpp", ".cc", ".inc")
HEADERS = (".h", ".hpp")


class Check:
    """One run of a check: the repository and the violations found in it."""

    def __init__(self, description):
        parser = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                            help="the repository to check (default: that of this script)")
        parser.add_argument("--preset", default=os.environ.get("TENON_PRESET", "release"),
                            help="preset whose binaries a check runs")
        options = parser.parse_args()
        self.name = Path(sys.argv[0]).name
        self.root = options.root.resolve()
        self.bin = self.root / "build" / options.preset / "bin"
        self.violations = 0

    def relative(self, path):
        path = Path(path)
        return path.relative_to(self.root).as_posix() if path.is_absolute() else path.as_posix()

    def violation(self, path, line, what):
        print(f"{self.relative(path)}:{line}: {what}")
        self.violations += 1

    def warning(self, path, line, what):
        print(f"{self.relative(path)}:{line}: warning: {what}")

    def finish(self, looked_at):
        """Ends the script; prints `looked_at`, the extent of the check, so that a vacuous check is visible."""
        if self.violations:
            print(f"{self.name}: {self.violations} violations in {looked_at}")
            sys.exit(1)
        print(f"{self.name}: ok, {looked_at}")
        sys.exit(0)

    def files(self, *folders, suffixes=CODE):
        """Returns every file with one of the suffixes in the folders and their subfolders, sorted."""
        return sorted(path for folder in folders
                      for path in (self.root / folder).rglob("*")
                      if path.suffix in suffixes and path.is_file())

    def names_in_list(self, path, macro):
        """Returns (line number, name) for every line `MACRO(name...)` of a list.inc."""
        pattern = re.compile(r"^\s*" + macro + r"\(\s*(\w+)")
        return [(number, match.group(1))
                for number, line in enumerate(read_lines(self.root / path), 1)
                if (match := pattern.match(line))]

    def binary(self, name):
        """Returns the path of a built binary; the check fails if it is missing."""
        path = self.bin / name
        if not path.exists():
            print(f"{self.name}: {self.relative(path)} is not built")
            sys.exit(1)
        return path


def read_lines(path):
    return path.read_text(encoding="utf-8").splitlines()


_TOKEN = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)


def without_comments(text):
    """Returns C++ source with blanked comments; keeps strings and line numbers."""
    def blank(match):
        token = match.group(0)
        if token.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", token)
        return token
    return _TOKEN.sub(blank, text)
