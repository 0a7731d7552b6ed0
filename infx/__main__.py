"""`python -m infx` is `infx`."""

from infx.cli.main import main

if __name__ == "__main__":
    main()
