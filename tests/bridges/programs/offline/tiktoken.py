"""In the place of tiktoken, which downloads its tables. Inspect counts the tokens of its mock model with it."""


class Words:
    def encode(self, text: str, **_: object) -> list[str]:
        return text.split()


def get_encoding(_: str) -> Words:
    return Words()
