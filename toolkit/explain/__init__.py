"""What a transformer does, number by number: pages made of records of real passes, for the terminal and the browser.

`pages` has what a page is made of and shows it, `pictures` draws maps and training curves. The topics, each with a
function that returns a page: `attention`, `worked` (without a model), `decoding` (translating and generating),
`training`, `parallel`, `gradients`. `texts` and `reading` are what they read with.
"""

from toolkit import submodules

__getattr__ = submodules(__name__)
