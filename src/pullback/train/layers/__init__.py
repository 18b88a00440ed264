"""Layers, by TensorFlow.js's names: ``pb.layers.dense(10, activation="relu")``."""

from __future__ import annotations

from pullback.train.layers.base import Layer as Layer
from pullback.train.layers.dense import Dense as Dense
from pullback.train.layers.dense import Dropout as Dropout
from pullback.train.layers.dense import Flatten as Flatten

dense, dropout, flatten = Dense, Dropout, Flatten
