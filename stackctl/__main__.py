"""`python -m stackctl`."""

from stackctl.cli.main import main

main()
