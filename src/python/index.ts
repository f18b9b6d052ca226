/** `kit/python`: Python for code that is not trusted, in processes that can be killed. */
import "../base/require-node.ts";

export type {
  AnyPythonDataclass,
  ForgottenVariable,
  PythonCall,
  PythonDataclass,
  PythonField,
  PythonFunction,
  PythonFunctionDefinition,
  PythonObject,
  PythonResourceLimits,
  PythonResult,
  PythonRunner,
  PythonRunOptions,
  PythonSession,
  PythonValue,
} from "./contract.ts";
export { createPython, type PythonOptions } from "./create-python.ts";
export { definePythonDataclass } from "./dataclass-registry.ts";
export { PythonError, PythonException, type PythonExceptionInfo } from "./python-error.ts";
export { defaultResourceLimits } from "./resource-limits.ts";
export { type PlainValue, toPlain } from "./values/to-plain.ts";
