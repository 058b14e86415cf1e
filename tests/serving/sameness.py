"""Requests that are decoded together give what they give alone: ids, ends, log-probabilities.

    python -m tests.serving.sameness --requests 200

Random requests of a language model and of a translator join a continuous batch at random steps, some others leave it;
then as many go through HTTP all at once. Where a request gives other ids than alone, the nearest border of its first
other choice is shown; within rounding of one, either token is right, and it is counted.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import toolkit
from tests.serving.answers import difference
from tests.serving.borders import borders, decoded_alone
from tests.serving.client import Connection
from tests.serving.load import MODELS, alone
from tests.serving.mix import QUESTIONS, STORIES, Case, conversation, mixed, sentence
from tests.serving.served import Served
from toolkit.decoding import ContinuationConfig, GenerationConfig, Hypothesis
from toolkit.decoding.continuous import ContinuousBatch, Progress, Request, Token
from toolkit.functional.softmax import log_softmax
from toolkit.models.gpt import GPT
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

TOLERANCE = 1e-4  # of log-probabilities
ROUNDING = 1e-5  # of scores, and of probabilities: as far as the order of additions moves them
