"""A page as a reader without eyes gets it: its elements in order, checked to be well formed."""

from html.parser import HTMLParser

EMPTY = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """elements: tag and attributes, in order. texts: by the tags around them."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.open, self.style = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        self.elements.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, text):
        if text.strip():
            self.texts.append((tuple(self.open), text))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, without=("style",)):
        return " ".join(text for tags, text in self.texts if not set(tags) & set(without))
