"""The explorer: a page on loopback that shows what a design does while sliders move.

state: what can be asked, with its limits.   answers: what is answered.
app: how it gets there, and to whom.         page/: the page; its script computes nothing.
"""
