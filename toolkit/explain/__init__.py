"""Pages that show a transformer at work, number by number, from records of real passes; for terminals and browsers.

`pages` has the blocks that a page is made of, and shows them. A topic is a module with a function that returns a page:
`attention`, `worked` (without a model), `decoding` (translating and generating), `training`, `parallel`, `gradients`.
README.md shows each of them.
"""

from toolkit import submodules

__getattr__ = submodules(__name__)
