"""Vector spaces of arrays under autograd's name."""

from pullback.autograd.vector_spaces import ArrayVSpace as ArrayVSpace
from pullback.autograd.vector_spaces import ComplexArrayVSpace as ComplexArrayVSpace
from pullback.autograd.vector_spaces import VSpace as VSpace
from pullback.autograd.vector_spaces import vspace as vspace
