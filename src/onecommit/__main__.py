"""``python -m onecommit`` is the command line."""

from onecommit.cli import main

if __name__ == "__main__":
    main()
