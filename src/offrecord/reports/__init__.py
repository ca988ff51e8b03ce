"""Reports: a release on one page, for someone who never saw the paper.

content  what is said, as data         page      the page as data
run      from a release at hand        words, sections        what is said, in words
files    from a certificate's files    html, markdown, style   its forms
around   the rule around one secret    curve     which budgets are foretold
opted    what each opt-out costs       report    the public door
place    where a report may be written
"""
