/**
 * A value from Python: None is null, int a number or (beyond 2^53) a bigint, float a number, bytes a
 * Uint8Array, list and tuple an array, dict a Map, set and frozenset a Set, an aware datetime a Date, a
 * dataclass an object with its fields. Any other value is its text.
 *
 * @see docs/python.md for the whole table, in both directions.
 */
export type PythonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Date
  | readonly PythonValue[]
  | ReadonlyMap<PythonValue, PythonValue>
  | ReadonlySet<PythonValue>
  | PythonObject;

/** A dataclass instance, by its fields. */
export interface PythonObject {
  readonly [field: string]: PythonValue;
}

/** The arguments that a call from Python brings to the host, and the signal that ends it. */
export interface PythonCall {
  readonly args: readonly PythonValue[];
  readonly kwargs: Readonly<Record<string, PythonValue>>;
  /** Fires when the run is aborted or the call's time is over; pass it on to whatever waits. */
  readonly signal: AbortSignal;
}

/** A function of the host, with its description for the model. */
export interface PythonFunctionDefinition {
  /** As Python would write it: `price(symbol: str, day: str = "today") -> float`. */
  readonly signature?: string;
  readonly description?: string;
  /** Milliseconds until Python gets a TimeoutError; default 60,000. */
  readonly timeoutMs?: number;
  execute(call: PythonCall): unknown;
}

/**
 * A function that Python can call by its name in `functions`. A plain function gets the positional
 * arguments, and after them an object of the keyword arguments if there are any. kit awaits a promise, and
 * Python gets its value. An error that the function throws is an exception in Python.
 */
export type PythonFunction = ((...args: never[]) => unknown) | PythonFunctionDefinition;

export interface PythonField {
  readonly name: string;
  /** Fields with a default come after those without, as in Python. */
  readonly default?: unknown;
}

/**
 * A dataclass that Python can construct, read and change by its fields, and whose methods run on the host.
 * A method gets a copy of the instance: Python does not see changes of the copy.
 */
export interface PythonDataclass<Instance extends object = PythonObject> {
  readonly name: string;
  readonly fields: readonly (string | PythonField)[];
  /** Its fields cannot be assigned, and it can be a key of a dict; default false. */
  readonly frozen?: boolean;
  readonly methods?: Readonly<Record<string, (self: Instance, ...args: never[]) => unknown>>;
  /**
   * Instances of it may be given to Python, and those of Python come back as its instances: with `create`,
   * or else with the prototype of the class and the fields set, its constructor not called.
   */
  readonly class?: abstract new (
    ...args: never[]
  ) => Instance;
  readonly create?: (fields: PythonObject) => Instance;
}

/** A dataclass whatever its instances are, as lists of dataclasses hold them. */
export type AnyPythonDataclass = Omit<PythonDataclass<never>, "class" | "create"> & {
  readonly class?: abstract new (...args: never[]) => object;
  readonly create?: (fields: PythonObject) => object;
};

/**
 * Limits of one run, forwarded unchanged to Monty, which defines their names and units. With `resourceLimits`, only
 * its limits apply; without it, the defaults.
 */
export interface PythonResourceLimits {
  readonly maxAllocations?: number;
  /** Seconds that Python itself runs; waiting for the host's functions does not count. */
  readonly maxDurationSecs?: number;
  /** Bytes of Python's heap. */
  readonly maxMemory?: number;
  readonly maxRecursionDepth?: number;
  /** Allocations between two garbage collections. */
  readonly gcInterval?: number;
}

export interface PythonRunOptions {
  /** Variables set before the run, by name; they stay, as any variable does. */
  readonly inputs?: Readonly<Record<string, unknown>> | undefined;
  readonly functions?: Readonly<Record<string, PythonFunction>> | undefined;
  readonly resourceLimits?: PythonResourceLimits | undefined;
  readonly signal?: AbortSignal | undefined;
  /** `repr`: the result is the text that Python's `repr` gives, at most 20,000 characters. Default `value`. */
  readonly returns?: "value" | "repr" | undefined;
}

/** A variable that the next run does not have, and why. */
export interface ForgottenVariable {
  readonly name: string;
  readonly reason: string;
}

export interface PythonResult {
  /** The value of the expression that the code ends with; null when it ends with something else. */
  readonly result: PythonValue;
  readonly stdout: string;
  /** Characters of output beyond the first 100,000, which are not in `stdout`. */
  readonly dropped_chars: number;
  readonly forgotten: readonly ForgottenVariable[];
  readonly duration_ms: number;
}

/**
 * Python with a memory: later runs have the variables, functions and imports of earlier ones. Runs execute one at a
 * time, in the order of the calls. A run that fails or is aborted changes no variable.
 */
export interface PythonSession {
  /**
   * Runs code. Throws `PythonError` for an exception, a limit included; `invalid_request` for inputs that
   * Python cannot have; `unavailable` where Monty is not installed; `signal.reason` when aborted.
   */
  run(code: string, options?: PythonRunOptions): Promise<PythonResult>;
  /** Makes a dataclass known to the following runs. Throws `invalid_request` for one that Python cannot have. */
  registerDataclass<Instance extends object = PythonObject>(dataclass: PythonDataclass<Instance>): void;
  registerDataclass(dataclass: AnyPythonDataclass): void;
  /** The variables as bytes, for another session, also in another process or version of kit. */
  dump(): Promise<Uint8Array>;
  /** Replaces the variables with those of a dump. Throws `invalid_request` for bytes that are not a dump. */
  load(dump: Uint8Array): Promise<void>;
  /** Forgets all variables. Dataclasses stay registered. */
  reset(): Promise<void>;
}

/** Makes Python sessions, and keeps the processes they run in. */
export interface PythonRunner {
  createSession(options?: { readonly dataclasses?: readonly AnyPythonDataclass[] }): PythonSession;
  /** Ends every process, and with it what still runs. */
  close(): Promise<void>;
}
