"""The documentation as a site: `cargo xtask site` builds it with Sphinx.

The pages are the repository's own Markdown. What they link to besides, such as experiments and
source code, is copied into the site, so that it is whole without a network. A link to a folder
leads to a page that lists its files.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

project = "anysched"
copyright = "the authors of anysched"
html_copy_source = False
html_show_sphinx = False

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "site/index"
include_patterns = [
    "*.md",
    "crates/*/*.md",
    "docs/**.md",
    "site/*.md",
    "site/folders/*.md",
    "traces/*.md",
]

# Headings have the anchors that code hosts give them.
myst_heading_anchors = 4
# Tables of one kind of kernel stand below a heading of the page, not of a section.
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "anysched"
# Where `cargo xtask site --reports` puts reports: a folder for the site's folder of this name.
REPORTS = ROOT / "target" / "site-reports"
# The first page, where people expect it.
html_extra_path = ["root"] + ([str(REPORTS)] if REPORTS.is_dir() else [])

# Links of Markdown to places in the repository.
LINK = re.compile(r"\]\(([^)#:\s]+)\)")


def list_folders(app):
    """Writes a page for each folder that a page links to."""
    pages = ROOT / "site" / "folders"
    pages.mkdir(exist_ok=True)
    for old in pages.glob("*.md"):
        old.unlink()
    for page in app.project.discover(app.config.exclude_patterns, app.config.include_patterns):
        path = app.env.doc2path(page)
        for link in LINK.findall(Path(path).read_text(encoding="utf-8")):
            folder = (Path(path).parent / link).resolve()
            if folder.is_dir() and folder.is_relative_to(ROOT):
                write_folder(pages, folder)


def list_reports(app):
    """Writes the page that lists reports, or how they are made."""
    reports = sorted(REPORTS.glob("reports/*.html"))
    if reports:
        links = [f'<li><a href="../../reports/{path.name}">{path.stem}</a></li>' for path in reports]
        text = (
            "The experiments in their quick form, each as a [page](../../docs/report.md) with answers, tables, "
            "plots and claims; the quickstart's has timelines, too.\n\n<ul>\n" + "\n".join(links) + "\n</ul>\n"
        )
    else:
        text = "`cargo xtask site --reports` makes a report of each paper and puts them here.\n"
    page = ROOT / "site" / "folders" / "reports.md"
    page.write_text(f"# Reports\n\n{text}", encoding="utf-8")


def page_name(folder):
    return str(folder.relative_to(ROOT)).replace("/", "-")


def write_folder(pages, folder):
    files = sorted(path for path in folder.iterdir() if path.is_file())
    inside = folder.relative_to(ROOT)
    lines = [f"# {inside}", ""] + [f"- [{path.name}](../../{inside}/{path.name})" for path in files]
    text = "---\norphan: true\n---\n\n" + "\n".join(lines) + "\n"
    (pages / f"{page_name(folder)}.md").write_text(text, encoding="utf-8")


def link_folders(app, page, source):
    """Has links to folders lead to the pages that list them."""
    here = Path(app.env.doc2path(page)).parent
    to_root = "../" * len(here.relative_to(ROOT).parts)

    def target(match):
        folder = (here / match[1]).resolve()
        if not folder.is_dir():
            return match[0]
        return f"]({to_root}site/folders/{page_name(folder)}.md)"

    source[0] = LINK.sub(target, source[0])


def setup(app):
    app.connect("builder-inited", list_folders)
    app.connect("builder-inited", list_reports)
    app.connect("source-read", link_folders)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
