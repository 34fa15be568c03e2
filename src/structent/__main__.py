"""``python -m structent``: the same as the command ``structent``."""

from structent.cli import main

if __name__ == "__main__":
    main()
