"""Code as people read it: lines of words, each with its kind, for pages that colour nothing alone.

listing("x = 1  # one")  ->  [[["", "x = 1  "], ["comment", "# one"]]]
"""

import html
import io
import keyword
import tokenize

KINDS = {tokenize.COMMENT: "comment", tokenize.STRING: "string"}


def listing(code: str) -> list[list[list[str]]]:
    """The lines of `code`, each a list of [kind, text]; kinds are keyword, string, comment, "".

    Example:
        >>> listing("return 'a'")
        [[['keyword', 'return'], ['', ' '], ['string', "'a'"]]]
    """
    lines = code.splitlines() or [""]
    kinds = [[""] * len(line) for line in lines]
    for kind, start, end in _coloured(code):
        for row in range(start[0], end[0] + 1):
            first = start[1] if row == start[0] else 0
            last = end[1] if row == end[0] else len(lines[row - 1])
            kinds[row - 1][first:last] = [kind] * (last - first)
    return [_words(line, marks) for line, marks in zip(lines, kinds, strict=True)]


def to_html(code: str) -> str:
    """The code for a page without styles."""
    return f"<pre><code>{html.escape(code, quote=False)}</code></pre>"


def _coloured(code: str) -> list[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Kind, start and end of each word that has a kind; what cannot be read stays plain."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            kind = KINDS.get(token.type, "")
            if token.type == tokenize.NAME and keyword.iskeyword(token.string):
                kind = "keyword"
            elif tokenize.tok_name[token.type].startswith("FSTRING"):  # Python 3.12
                kind = "string"
            if kind:
                found.append((kind, token.start, token.end))
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def _words(line: str, marks: list[str]) -> list[list[str]]:
    words: list[list[str]] = []
    for letter, kind in zip(line, marks, strict=True):
        if words and words[-1][0] == kind:
            words[-1][1] += letter
        else:
            words.append([kind, letter])
    return words
