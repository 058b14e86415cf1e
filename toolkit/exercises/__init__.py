"""Set exercises whose check says what is wrong: functions of a transformer that a learner finishes.

toolkit exercise start course      a directory with a file for each
toolkit exercise check             what is wrong with the first that is not right
"""

from toolkit.exercises.exercise import Exercise, Mistake

__all__ = ["Exercise", "Mistake"]
