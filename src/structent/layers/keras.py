"""The last layer for Keras 3: a ``keras.layers.Dense`` in which related classes share vectors."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

from structent._optional import load_optional

load_optional("keras", extra="keras", purpose="StructuredDense")

import keras  # type: ignore[import-untyped]  # noqa: E402  Keras has no types
import numpy as np  # noqa: E402
from keras import ops  # noqa: E402

from structent.errors import StructureError  # noqa: E402
from structent.layers.blocks import Operations, block_plan  # noqa: E402
from structent.structure import PartitionSampler, RandomPartition, files  # noqa: E402

__all__ = ["StructuredDense"]

Tensor: TypeAlias = Any  # a tensor of the backend


@keras.saving.register_keras_serializable(package="structent")
class StructuredDense(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    r"""A ``keras.layers.Dense`` in which related classes share vectors.

    .. math:: W_c = \sqrt{s} \, v_c + \sum_t \sqrt{w_t} \, v_{t, B_t(c)}

    where s is the weight of the singletons and :math:`B_t(c)` the block of class c in partition t.
    The weights of the layer are the vectors v. A penalty or weight decay on them is the Gaussian
    prior under which the weights of two classes have the covariance ``structure.similarity()``.
    At the start the kernel has the same variance as in ``Dense`` (Glorot, uniform).

    Parameters
    ----------
    structure
        How the classes are related, in the order of the outputs. For a sampler, its expected
        similarity is used.
    singleton_weight
        The weight s; the other weights stay in proportion. None keeps the structure's.
    activation, use_bias
        As in ``Dense``.
    kernel_regularizer
        The penalty on the vectors v, such as ``keras.regularizers.L2(1e-4)``.
    seed
        The seed of the initial weights.
    **options
        The options of every layer: name, dtype, trainable.

    Attributes
    ----------
    kernel, bias
        The ordinary weights of ``Dense``, (features, classes) and (classes,).

    Examples
    --------
    >>> from structent.structure.catalog import cifar100
    >>> head = StructuredDense(cifar100(), singleton_weight=0.6)  # was: Dense(100)
    >>> model = keras.Sequential([keras.Input((512,)), head])
    >>> model(np.zeros((8, 512))).shape == (8, 100), head.kernel.shape == (512, 100)
    (True, True)
    """

    def __init__(
        self,
        structure: RandomPartition | PartitionSampler,
        *,
        singleton_weight: float | None = None,
        activation: Any = None,
        use_bias: bool = True,
        kernel_regularizer: Any = None,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.structure, self.singleton_weight = structure, singleton_weight
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.seed = seed
        self._plan = block_plan(structure, singleton_weight)
        self.units = self._plan.factor.n_classes
        self.input_spec = keras.layers.InputSpec(min_ndim=2)
        self.class_vectors: Any = None
        self.block_vectors: Any = None
        self.bias: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Make the weights for the number of features."""
        features: Any = input_shape[-1]
        # The weights w_t sum to 1, so the sum has the same variance as each of its parts.
        limit = (6.0 / (features + self.units)) ** 0.5
        seeds = keras.random.SeedGenerator(self.seed)

        def vectors(name: str, rows: int) -> Any:
            drawn = keras.initializers.RandomUniform(-limit, limit, seed=seeds)
            return self.add_weight(
                name=name, shape=(rows, features), initializer=drawn,
                regularizer=self.kernel_regularizer, autocast=False,
            )  # fmt: skip

        self.class_vectors = vectors("class_vectors", self.units)
        if self._plan.factor.n_blocks:
            self.block_vectors = vectors("block_vectors", self._plan.factor.n_blocks)
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: features})

    @property
    def kernel(self) -> Tensor:
        """The kernel of a ``Dense`` layer, (features, classes): a function of the weights."""
        if self.class_vectors is None:
            raise StructureError(
                "the layer has a kernel only after it is built, got a layer that was never called; "
                "call it, or build((None, n_features))"
            )
        return ops.transpose(self._class_rows())

    def call(self, inputs: Tensor) -> Tensor:
        """Return the outputs, (..., classes), of features, (..., features)."""
        outputs = ops.matmul(inputs, ops.cast(self.kernel, self.compute_dtype))
        if self.bias is not None:
            outputs = ops.add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the outputs."""
        return (*input_shape[:-1], self.units)

    def to_dense(self) -> Any:
        """Return a plain ``keras.layers.Dense`` with the same outputs, for export."""
        dense = keras.layers.Dense(self.units, activation=self.activation, use_bias=self.use_bias)
        kernel = self.kernel
        dense.build((None, kernel.shape[0]))
        dense.set_weights([ops.convert_to_numpy(w) for w in (kernel, self.bias) if w is not None])
        return dense

    @classmethod
    def from_dense(
        cls,
        dense: Any,
        structure: RandomPartition | PartitionSampler,
        *,
        singleton_weight: float | None = None,
    ) -> Self:
        """Return a layer with the weights of a trained ``Dense`` and vectors of smallest norm."""
        if not isinstance(dense, keras.layers.Dense) or not dense.built:
            raise StructureError(
                f"dense must be a keras.layers.Dense that is built, got {type(dense).__name__}"
            )
        layer = cls(
            structure, singleton_weight=singleton_weight,
            activation=dense.activation, use_bias=dense.use_bias,
        )  # fmt: skip
        if layer.units != dense.units:
            raise StructureError(
                f"structure covers {layer.units} classes but dense has {dense.units} outputs"
            )
        kernel = ops.convert_to_numpy(dense.kernel)
        layer.build((None, kernel.shape[0]))
        vectors = layer._plan.factor.block_vectors(kernel.T)
        for variable, value in (
            (layer.class_vectors, vectors[0]),
            (layer.block_vectors, vectors[1]),
            (layer.bias, dense.bias),
        ):
            if variable is not None:
                variable.assign(value)
        return layer

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the layer, the structure as JSON text."""
        return {
            **super().get_config(),
            "structure": files.structure_to_json(self.structure),
            "singleton_weight": self.singleton_weight,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return the layer whose arguments :meth:`get_config` gave."""
        return cls(**{**config, "structure": files.structure_from_json(config["structure"])})

    def _class_rows(self) -> Tensor:
        plan, own = self._plan, ops.convert_to_tensor(self.class_vectors)
        if self.block_vectors is None:
            return own
        matrix = None
        if plan.matrix is not None:
            matrix = ops.convert_to_tensor(plan.matrix, dtype=own.dtype)
        of_blocks = ops.convert_to_tensor(self.block_vectors)
        return plan.class_vectors(own, of_blocks, matrix, plan.parents, _OPERATIONS)


_OPERATIONS = Operations(
    matmul=ops.matmul,
    multiply=ops.multiply,
    add=lambda x, y, scale: x + scale * y,
    take=lambda table, index: ops.take(table, index, axis=0),
    split=lambda table, sizes: ops.split(table, np.cumsum(sizes)[:-1].tolist()),
)
