"""The explorer: a page on loopback that shows what a design does while sliders move.

state: what can be asked, with its limits.   answers, samples: what is answered.
app, guard: how it gets there.               page/: the page; its script computes nothing.
"""
