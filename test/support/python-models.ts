const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const tensors = `input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, 4 ] } ]
`;

export const pythonConfig = (name: string, more = ''): string => `name: "${name}"
backend: "python"
${tensors}${more}`;

/** `y = factor · x`, as a Python model: its folder in a version is what Triton's repository would have. */
export const scalePython = (factor: number): string => `import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb.get_input_tensor_by_name(request, "x").as_numpy()
            answers.append(pb.InferenceResponse([pb.Tensor("y", (x * ${factor}).astype(np.float32))]))
        return answers
`;

/**
 * `y = x`, with what can be wrong about a version: each answer takes `sleepMs`, `failing` of ten answers are errors, or
 * every value is NaN. `note` makes other bytes of it, and nothing else.
 */
export const faultyPython = ({ sleepMs = 0, failing = 0, nan = false, note = '' }): string => `# ${note}
import time
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.asked = 0

    def execute(self, requests):
        answers = []
        for request in requests:
            self.asked += 1
            time.sleep(${sleepMs / 1_000})
            x = pb.get_input_tensor_by_name(request, "x").as_numpy()
            if (self.asked * 7) % 10 < ${failing}:
                answers.append(pb.InferenceResponse(error=pb.TritonError("out of order")))
            else:
                answers.append(pb.InferenceResponse([pb.Tensor("y", (x * ${nan ? 'np.nan' : '1'}).astype(np.float32))]))
        return answers
`;

/** Business-logic scripting: calls another model with the same input, and adds \`own\` to its answer. */
export const callerPython = (called: string, own: number): string => `import json

import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.model = parameters.get("PERCH_MODEL_${called}", {"string_value": "${called}"})["string_value"]

    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb.get_input_tensor_by_name(request, "x")
            call = pb.InferenceRequest(model_name=self.model, requested_output_names=["y"], inputs=[x])
            answer = call.exec()
            if answer.has_error():
                answers.append(pb.InferenceResponse(error=pb.TritonError(answer.error().message())))
                continue
            y = pb.get_output_tensor_by_name(answer, "y").as_numpy()
            answers.append(pb.InferenceResponse([pb.Tensor("y", y + ${own})]))
        return answers
`;

/** Files of a version that is one Python model. */
export const pythonModel = (name: string, code: string): Record<string, Uint8Array> => ({
  'config.pbtxt': bytes(pythonConfig(name)),
  '1/model.py': bytes(code),
});

/** An ensemble that hands its input through the models in order. */
export const ensembleConfig = (name: string, steps: readonly string[]): string => `name: "${name}"
platform: "ensemble"
${tensors}ensemble_scheduling {
  step [
${steps
  .map(
    (step, at) => `    {
      model_name: "${step}"
      model_version: -1
      input_map { key: "x" value: "${at === 0 ? 'x' : `between_${at}`}" }
      output_map { key: "y" value: "${at === steps.length - 1 ? 'y' : `between_${at + 1}`}" }
    }`,
  )
  .join(',\n')}
  ]
}
`;

/** Files of a version that is an ensemble with the models it steps into, each multiplying by its factor. */
export const ensembleModel = (name: string, factors: Readonly<Record<string, number>>): Record<string, Uint8Array> => ({
  [`${name}/config.pbtxt`]: bytes(ensembleConfig(name, Object.keys(factors))),
  ...Object.fromEntries(
    Object.entries(factors).flatMap(([part, factor]) => [
      [`${part}/config.pbtxt`, bytes(pythonConfig(part))],
      [`${part}/1/model.py`, bytes(scalePython(factor))],
    ]),
  ),
});

/** Trains on points around two centres, keeps both models in a folder, and prints what they say of four points. */
export const trainedModels = `import json, sys

import joblib
import numpy as np
import xgboost
from sklearn.linear_model import LogisticRegression

folder = sys.argv[1]
random = np.random.default_rng(7)
points = np.concatenate([random.normal(centre, 1.0, (200, 4)) for centre in (-1.0, 1.0)]).astype(np.float32)
kinds = np.repeat([0, 1], 200)
rows = points[::100]
logit = LogisticRegression().fit(points, kinds)
joblib.dump(logit, folder + "/logit.joblib")
trees = xgboost.train({"max_depth": 3, "objective": "binary:logistic"}, xgboost.DMatrix(points, kinds), 10)
trees.save_model(folder + "/trees.ubj")
said = {"logit": logit.predict_proba(rows), "trees": trees.predict(xgboost.DMatrix(rows)).reshape(-1, 1)}
print(json.dumps({"rows": rows.tolist(), "said": {name: values.tolist() for name, values in said.items()}}))
`;
