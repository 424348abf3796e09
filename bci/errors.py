"""The one exception that means the user, not the code, has something to change."""


class InvalidInput(ValueError):
    """Bad input from the user: data, a file or a setting.

    The message is one line. It names the file, column or key, says what was expected and what came,
    and what to do about it. Entry points print it without a traceback.
    """
