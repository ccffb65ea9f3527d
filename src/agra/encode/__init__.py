"""Raw inputs to rows of numbers, fitted on the training split only.

from agra.encode import TfIdf, encode
splits = encode({"train": ..., "valid": ..., "test": ...}, TfIdf())
"""

from agra.encode.cache import cache_folder
from agra.encode.encoder import Encoder, encode
from agra.encode.fine_tuning import FineTuning
from agra.encode.image import ImageFeatures
from agra.encode.storage import load_encoded, save_encoded
from agra.encode.text import SentenceEmbeddings, TfIdf

__all__ = [
    "Encoder",
    "FineTuning",
    "ImageFeatures",
    "SentenceEmbeddings",
    "TfIdf",
    "cache_folder",
    "encode",
    "load_encoded",
    "save_encoded",
]
