"""The explorer: a page on loopback that shows what a design does while sliders move.

state: what can be asked, with its limits.       forms: what is answered.
regions, policies, curves, samples, copies: one part of the answers each.
worker, workers: where they are computed.        app, guard, reference, serving: how they get there.
page/: the page; its script draws and computes nothing.
"""
