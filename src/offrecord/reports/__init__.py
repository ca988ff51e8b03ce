"""Reports: a release on one page, for people who never saw the paper.

report     the public function     content    what is said, as objects
sections   in words                pictures   charts of rules, models and what follows from them
page       blocks of a page        html, style   its form
"""
