"""Compares Consort with gloo on this machine: `python -m consort.torch [PROCESSES]`."""

from ._comparison import main

if __name__ == "__main__":
    main()
