class InputError(Exception):
    """Something is wrong in a file."""

    code = 1


class UsageError(InputError):
    """Something is wrong on the command line."""

    code = 2
