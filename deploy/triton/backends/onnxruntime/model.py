"""A Python-based Triton back-end named `onnxruntime`, for servers that come without the native one.

A folder of this name with only this file in the back-end directory makes every model whose configuration says
`backend: "onnxruntime"` or `platform: "onnxruntime_onnx"` run in the onnxruntime wheel, from the same files that the
native back-end serves. Parameters of a model, as the native one spells them: `intra_op_thread_count`,
`inter_op_thread_count`, `execution_mode` (0 or 1).
"""

import json
import os

import numpy as np
import triton_python_backend_utils as pb

# onnxruntime's name of an element type -> Triton's name in a configuration. Types that are missing cannot be served.
CONFIG_TYPES = {
    "tensor(bool)": "TYPE_BOOL",
    "tensor(uint8)": "TYPE_UINT8",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(int8)": "TYPE_INT8",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(float16)": "TYPE_FP16",
    "tensor(float)": "TYPE_FP32",
    "tensor(double)": "TYPE_FP64",
    "tensor(string)": "TYPE_STRING",
}
# What Triton takes as the largest batch of a model that batches and does not say how much.
DEFAULT_MAX_BATCH_SIZE = 4


def config_type(arg):
    if arg.type not in CONFIG_TYPES:
        raise pb.TritonModelException(f"tensor '{arg.name}' is a {arg.type}, which this back-end cannot serve")
    return CONFIG_TYPES[arg.type]


def sizes(arg):
    """The shape of a graph's tensor with -1 for every size that may differ."""
    return [size if isinstance(size, int) and size >= 0 else -1 for size in (arg.shape or [])]


def model_file(version_dir, config):
    """The file of a version. A folder of that name holds a model.onnx with its external data."""
    name = config.get("default_model_filename") or "model.onnx"
    path = os.path.join(version_dir, name)
    if os.path.isdir(path):
        path = os.path.join(path, "model.onnx")
    if not os.path.isfile(path):
        raise pb.TritonModelException(f"there is no file '{name}' in {os.path.basename(version_dir)}/")
    return path


def parameter(config, name, default):
    text = config.get("parameters", {}).get(name, {}).get("string_value", "")
    try:
        return int(text) if text else default
    except ValueError:
        raise pb.TritonModelException(f"parameter {name} wants a whole number, got '{text}'") from None


def instances(config):
    return sum(max(1, group.get("count", 1)) for group in config.get("instance_group", [])) or 1


def open_session(path, config, optimise=True):
    # Not at the top: a complete configuration is looked at in a process of its own that never needs a session, and
    # this import is most of its time.
    import onnxruntime as ort

    options = ort.SessionOptions()
    # Every instance is a process of its own; together they should not ask for more threads than there are cores.
    cores = len(os.sched_getaffinity(0))
    options.intra_op_num_threads = parameter(config, "intra_op_thread_count", max(1, cores // instances(config)))
    options.inter_op_num_threads = parameter(config, "inter_op_thread_count", 1)
    if parameter(config, "execution_mode", 0) == 1:
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    # Waiting threads that spin take the cores from the other instances and from the server.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise pb.TritonModelException(f"onnxruntime cannot load the model: {error}") from None


def tensor_fault(kind, declared, args, max_batch_size):
    """What is wrong with a tensor of the configuration, held against the graph; None when they agree."""
    name = declared["name"]
    arg = next((arg for arg in args if arg.name == name), None)
    if arg is None:
        allowed = ", ".join(arg.name for arg in args)
        return f"unexpected inference {kind} '{name}', allowed {kind}s are: {allowed}"
    if declared["data_type"] != config_type(arg):
        return f"{kind} '{name}' is {declared['data_type']} in the configuration and {config_type(arg)} in the model"
    dims = declared.get("reshape", {}).get("shape", declared["dims"]) if "reshape" in declared else declared["dims"]
    full = ([-1] if max_batch_size > 0 else []) + [int(size) for size in dims]
    graph = sizes(arg)
    if arg.shape is not None and (
        len(full) != len(graph) or any(a != b and a != -1 and b != -1 for a, b in zip(full, graph))
    ):
        return f"{kind} '{name}': the model expects the shape {graph} and the configuration says {full}"
    return None


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        given = config.as_dict()
        has_tensors = bool(given.get("input")) or bool(given.get("output"))
        if given.get("input") and given.get("output"):
            return config
        session = open_session(model_file(pb.get_model_dir(), given), given, optimise=False)
        inputs, outputs = session.get_inputs(), session.get_outputs()
        batches = all(sizes(arg)[:1] == [-1] for arg in [*inputs, *outputs])
        max_batch_size = given.get("max_batch_size", 0)
        if max_batch_size > 0 and not batches:
            raise pb.TritonModelException(
                "model does not support batching while non-zero max_batch_size is specified"
            )
        if max_batch_size == 0 and batches and not has_tensors:
            max_batch_size = DEFAULT_MAX_BATCH_SIZE
            config.set_max_batch_size(max_batch_size)
            if "sequence_batching" not in given and "dynamic_batching" not in given:
                config.set_dynamic_batching()
        for kind, args, add in (("input", inputs, config.add_input), ("output", outputs, config.add_output)):
            if given.get(kind):
                continue
            for arg in args:
                dims = sizes(arg)[1:] if max_batch_size > 0 else sizes(arg)
                tensor = {"name": arg.name, "data_type": config_type(arg), "dims": dims or [1]}
                if not dims:
                    tensor["reshape"] = {"shape": []}
                add(tensor)
        return config

    def initialize(self, args):
        config = json.loads(args["model_config"])
        version_dir = os.path.join(args["model_repository"], args["model_version"])
        self.session = open_session(model_file(version_dir, config), config)
        self.max_batch_size = config.get("max_batch_size", 0)
        self.reshape = {
            tensor["name"]: tensor["reshape"].get("shape", [])
            for tensor in [*config["input"], *config["output"]]
            if "reshape" in tensor
        }
        self.declared = {tensor["name"]: [int(size) for size in tensor["dims"]] for tensor in config["output"]}
        self.inputs = [tensor["name"] for tensor in config["input"]]
        self.outputs = [tensor["name"] for tensor in config["output"]]
        for kind, args_of in (("input", self.session.get_inputs()), ("output", self.session.get_outputs())):
            for tensor in config[kind]:
                fault = tensor_fault(kind, tensor, args_of, self.max_batch_size)
                if fault:
                    raise pb.TritonModelException(fault)
        missing = {arg.name for arg in self.session.get_inputs()} - set(self.inputs)
        if missing:
            raise pb.TritonModelException(f"the model wants the inputs {sorted(missing)}, which are not configured")

    def execute(self, requests):
        responses = [None] * len(requests)
        groups = {}
        for index, request in enumerate(requests):
            try:
                feed = self.feed_of(request)
            except Exception as error:
                responses[index] = failed(error)
                continue
            # Requests run together when all but their first size agree.
            shapes = tuple(sorted((name, array.shape[1:]) for name, array in feed.items()))
            key = shapes if self.max_batch_size > 0 else index
            groups.setdefault(key, []).append((index, feed))
        for members in groups.values():
            self.run_group(requests, members, responses)
        return responses

    def feed_of(self, request):
        feed = {}
        for name in self.inputs:
            tensor = pb.get_input_tensor_by_name(request, name)
            if tensor is None:
                continue
            array = tensor.as_numpy()
            if array.dtype == np.object_ or array.dtype.kind == "S":
                array = np.array([text.decode() for text in array.ravel()], dtype=object).reshape(array.shape)
            if name in self.reshape:
                batch = array.shape[:1] if self.max_batch_size > 0 else ()
                array = array.reshape(*batch, *reshaped(self.reshape[name], array.shape[len(batch) :]))
            feed[name] = array
        return feed

    def run_group(self, requests, members, responses):
        try:
            if len(members) == 1:
                feed = members[0][1]
            else:
                feed = {name: np.concatenate([part[name] for _, part in members]) for name in members[0][1]}
            results = dict(zip(self.outputs, self.session.run(self.outputs, feed)))
            at = 0
            for index, part in members:
                rows = next(iter(part.values())).shape[0] if len(members) > 1 else None
                own = {n: a if rows is None else a[at : at + rows] for n, a in results.items()}
                responses[index] = self.response_of(requests[index], own)
                at += rows or 0
        except Exception as error:
            if len(members) == 1:
                responses[members[0][0]] = failed(error)
                return
            # One bad request must not spoil those it was batched with.
            for member in members:
                self.run_group(requests, [member], responses)

    def response_of(self, request, results):
        wanted = request.requested_output_names()
        tensors = []
        for name in self.outputs:
            if wanted and name not in wanted:
                continue
            array = results[name]
            if array.dtype == np.object_ or array.dtype.kind == "U":
                array = np.array([str(text).encode() for text in array.ravel()], dtype=object).reshape(array.shape)
            if name in self.reshape:
                batch = array.shape[:1] if self.max_batch_size > 0 else ()
                array = array.reshape(*batch, *reshaped(self.declared[name], array.shape[len(batch) :]))
            tensors.append(pb.Tensor(name, np.ascontiguousarray(array)))
        return pb.InferenceResponse(output_tensors=tensors)


def reshaped(shape, got):
    """A configured shape with its -1 filled, in order, from the sizes that came with the tensor."""
    shape = [int(size) for size in shape]
    if shape.count(-1) <= 1:
        return shape
    free = [size for size in got]
    return [free.pop(0) if size == -1 else size for size in shape]


def failed(error):
    return pb.InferenceResponse(error=pb.TritonError(str(error)))
