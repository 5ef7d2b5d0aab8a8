"""Reading records in chunks, declaring what they are, and encoding them into a universe."""

from geomdp.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    DiscreteColumn,
    NumericColumn,
    RealColumn,
)
from geomdp.data.encoding import encode, numeric_chunks
from geomdp.data.inference import INFERENCE_WARNING, InferredSchema, infer_schema
from geomdp.data.readers import read_chunks
from geomdp.data.samples import Sample, fair_affairs, rand_health_insurance
from geomdp.data.schema import Schema

__all__ = [
    "INFERENCE_WARNING",
    "BooleanColumn",
    "CategoricalColumn",
    "Column",
    "DiscreteColumn",
    "InferredSchema",
    "NumericColumn",
    "RealColumn",
    "Sample",
    "Schema",
    "encode",
    "fair_affairs",
    "infer_schema",
    "numeric_chunks",
    "rand_health_insurance",
    "read_chunks",
]
