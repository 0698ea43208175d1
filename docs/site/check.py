#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py FOLDER: every link of a built site leads to a file and an anchor that are there, and nothing is fetched from elsewhere."""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """A page's links and anchors, and what a browser fetches to show it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.fetched, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        fetched = attrs.get("src") or (attrs.get("href") if tag == "link" and attrs.get("rel") != "canonical" else None)
        if fetched:
            self.fetched.append(fetched)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text(errors="replace")) for path in root.rglob("*.html")}
    found, count = [], 0
    for path, page in sorted(pages.items()):
        for link, is_fetched in [*((link, False) for link in page.links), *((link, True) for link in page.fetched)]:
            parts = urllib.parse.urlsplit(link)
            where = path.relative_to(root)
            if parts.scheme or parts.netloc:
                if is_fetched and parts.scheme != "data":
                    found.append(f"{where}: fetches {link}")
                continue
            count += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            fragment = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                found.append(f"{where}: there is no {link}")
            elif fragment and where.parts[0] == "headers":
                continue  # Doxygen's own pages link to sections that they leave out
            elif fragment and target in pages and fragment not in pages[target].anchors:
                found.append(f"{where}: {link} has no such heading")
    print(*found, sep="\n", end="\n" if found else "")
    print(f"site: {len(pages)} pages, {count} links, {len(found)} broken")
    sys.exit(1 if found or not pages else 0)


if __name__ == "__main__":
    main()
