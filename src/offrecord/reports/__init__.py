"""Reports: a release on one page, for people who never saw the paper.

report     what is said, as an object        sections   in words
pictures   charts of rules and chains        html       blocks of a page; page.css their look
"""
