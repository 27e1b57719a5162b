import { AppError } from '@perch/contracts';

/** Libraries whose models a Python model of Triton serves, by ClearML's names of engines. */
export const templateEngines = ['sklearn', 'xgboost', 'lightgbm'] as const;
export type TemplateEngine = (typeof templateEngines)[number];

export const isTemplateEngine = (name: string): name is TemplateEngine =>
  (templateEngines as readonly string[]).includes(name);

/** Loading one of these runs whatever its author put in. */
const isPickle = (path: string): boolean => /\.(pkl|pickle|joblib|cloudpickle|sav)$/i.test(path);

/** Formats that hold a model and no code. */
const plainFormats: Readonly<Record<TemplateEngine, RegExp>> = {
  sklearn: /$^/,
  xgboost: /\.(json|ubj|xgb|model|bst)$/i,
  lightgbm: /\.(txt|lgb|model)$/i,
};

const wanted: Readonly<Record<TemplateEngine, string>> = {
  sklearn: '.pkl or .joblib',
  xgboost: '.json or .ubj (Booster.save_model), or a pickle',
  lightgbm: '.txt (Booster.save_model), or a pickle',
};

/** Whether a file can be wrapped as it is; a pickle that nobody allowed is uploaded as bytes alone. */
export const isServable = (engine: TemplateEngine, file: string, allowPickle: boolean): boolean =>
  plainFormats[engine].test(file) || (allowPickle && isPickle(file));

export const methods = ['predict', 'predict_proba', 'decision_function', 'transform'] as const;

export interface TemplateWish {
  engine: TemplateEngine;
  /** Name of the model's file, without folders. */
  file: string;
  allowPickle: boolean;
  method?: string | undefined;
  /** Numbers of one example; left out: any. */
  features?: number | undefined;
  /** Default FP32. */
  outputType?: string | undefined;
}

export interface TemplateFiles {
  /** Where the model's own file goes. */
  modelPath: string;
  texts: Record<string, string>;
  pickle: boolean;
}

/** What makes a version of the file: Triton's configuration and a Python model. Throws `invalid` with what to do. */
export function planTemplate(wish: TemplateWish): TemplateFiles {
  const { engine, file, allowPickle, method = 'predict', outputType = 'FP32' } = wish;
  const pickle = isPickle(file);
  if (!pickle && !plainFormats[engine].test(file))
    throw new AppError('invalid', `--engine ${engine}: ${file} is of no kind that is known, wanted ${wanted[engine]}`);
  if (pickle && !allowPickle)
    throw new AppError(
      'invalid',
      `${file} is a pickle: loading it runs any code that its author put in, on the model servers. If you trust it, say --allow-pickle (the audit log keeps that)${engine === 'sklearn' ? '; else export the model to ONNX (skl2onnx)' : `; else save it as ${wanted[engine].replace(', or a pickle', '')}`}`,
    );
  if (!(methods as readonly string[]).includes(method))
    throw new AppError('invalid', `--method: wants ${methods.join(', ')}, got "${method}"`);
  if (!/^(FP32|FP64|INT32|INT64)$/.test(outputType))
    throw new AppError('invalid', `--output-type: wants FP32, FP64, INT32 or INT64, got "${outputType}"`);
  return {
    modelPath: `1/${file}`,
    pickle,
    texts: { 'config.pbtxt': configText(wish, method, outputType), '1/model.py': modelText },
  };
}

const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value: { string_value: ${JSON.stringify(value)} } }`;

const configText = ({ engine, file, features }: TemplateWish, method: string, outputType: string): string =>
  `backend: "python"
max_batch_size: 1024
input [ { name: "x" data_type: TYPE_FP32 dims: [ ${features ?? -1} ] } ]
output [ { name: "y" data_type: TYPE_${outputType} dims: [ -1 ] } ]
${parameter('engine', engine)}
${parameter('file', file)}
${parameter('method', method)}
`;

/** Written into the version, so that what runs is what was uploaded. */
const modelText = `"""Serves one model file of scikit-learn, XGBoost or LightGBM: x [rows, features] in, y [rows, values] out."""
import json
import os

import numpy as np
import triton_python_backend_utils as pb

PACKAGES = {"sklearn": "scikit-learn", "xgboost": "xgboost", "lightgbm": "lightgbm"}
PICKLES = (".pkl", ".pickle", ".joblib", ".cloudpickle", ".sav")


def unpickle(path):
    try:
        import joblib
    except ImportError:
        import pickle

        with open(path, "rb") as file:
            return pickle.load(file)
    return joblib.load(path)


def open_model(engine, path):
    if path.lower().endswith(PICKLES):
        return unpickle(path)
    if engine == "xgboost":
        import xgboost

        booster = xgboost.Booster()
        booster.load_model(path)
        return booster
    import lightgbm

    return lightgbm.Booster(model_file=path)


def rows_for(engine, model, x):
    """XGBoost's own Booster reads its own matrix; everything else reads arrays."""
    if engine == "xgboost":
        import xgboost

        if isinstance(model, xgboost.Booster):
            return xgboost.DMatrix(x)
    return x


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.parameters = {key: value["string_value"] for key, value in config["parameters"].items()}
        self.dtype = pb.triton_string_to_numpy(config["output"][0]["data_type"])
        engine = self.parameters["engine"]
        path = os.path.join(args["model_repository"], args["model_version"], self.parameters["file"])
        try:
            self.model = open_model(engine, path)
            method = self.parameters["method"]
            self.ask = getattr(self.model, method, None)
        except ImportError as error:
            raise pb.TritonModelException(
                f"{error}: this server's Python has no {PACKAGES[engine]}; install it there (pip install {PACKAGES[engine]}), "
                "or give the model an environment of its own (parameter EXECUTION_ENV_PATH)"
            )
        if self.ask is None:
            raise pb.TritonModelException(f"a {type(self.model).__name__} has no {method}; upload it with another --method")

    def execute(self, requests):
        inputs = [pb.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        try:
            if len({x.shape[1] for x in inputs}) == 1:
                answers = np.split(self.predict(np.concatenate(inputs)), np.cumsum([len(x) for x in inputs])[:-1])
                return [self.answer(y) for y in answers]
        except Exception:
            pass  # one request of a batch may be at fault: each is asked alone
        return [self.alone(x) for x in inputs]

    def alone(self, x):
        try:
            return self.answer(self.predict(x))
        except Exception as error:
            return pb.InferenceResponse(error=pb.TritonError(f"{type(error).__name__}: {str(error)[:300]}"))

    def predict(self, x):
        y = np.asarray(self.ask(rows_for(self.parameters["engine"], self.model, x)))
        return y.reshape(len(x), -1).astype(self.dtype)

    def answer(self, y):
        return pb.InferenceResponse([pb.Tensor("y", y)])
`;
