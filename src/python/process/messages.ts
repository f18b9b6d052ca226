import type { ForgottenVariable } from "../contract.ts";
import type { PythonExceptionInfo } from "../python-error.ts";
import type { WireValue } from "../values/wire-value.ts";

/** The parts of a dataclass that the process needs: to construct instances and to know the methods. */
export interface DataclassShape {
  readonly name: string;
  readonly frozen: boolean;
  readonly fields: readonly { readonly name: string; readonly default?: WireValue }[];
  readonly methods: readonly string[];
}

/** An import that stays, as the statement that makes it. */
export interface KeptImport {
  readonly name: string;
  readonly source: string;
}

/** A saved function: its source, and the names that the source uses, which are loaded with it. */
export interface KeptFunction extends KeptImport {
  readonly mentions: readonly string[];
}

/** The variables at the start of a run. Their bytes are the frame's attachment, in order. */
export interface StateMessage {
  readonly functions: readonly KeptFunction[];
  readonly imports: readonly KeptImport[];
  /** `batch` is the number of the run that saved a variable; positions in its table count within that batch. */
  readonly variables: readonly { readonly name: string; readonly batch: number; readonly size: number }[];
}

export interface RunMessage {
  readonly type: "run";
  readonly code: string;
  readonly inputs: readonly (readonly [name: string, value: WireValue])[];
  /** Names of the host functions. */
  readonly functions: readonly string[];
  readonly dataclasses: readonly DataclassShape[];
  /** Monty's limits as the caller set them. */
  readonly limits: WireValue;
  readonly returns: "value" | "repr";
  readonly state: StateMessage;
  /** Milliseconds of execution after which the watchdog ends the process. */
  readonly deadline_ms: number;
  /** Bytes of memory at which the watchdog ends the process. */
  readonly memory_ceiling: number;
}

/** The progress of a program when it was parked. */
export interface ParkedProgress {
  /** Milliseconds of computing time. */
  readonly executed_ms: number;
  /** Printed characters, including dropped ones. */
  readonly printed_chars: number;
}

/**
 * Continues a parked program, in any process. The attachment is its snapshot; `run` is its first message without the values
 * of the inputs, which are in the snapshot.
 */
export interface ResumeMessage {
  readonly type: "resume";
  readonly run: RunMessage;
  readonly progress: ParkedProgress;
  readonly answer: AnswerMessage;
}

/**
 * The messages that kit sends to its Python process. kit sends `park` to a process whose program waits for the host, if
 * another program needs the process.
 */
export type HostMessage = RunMessage | ResumeMessage | AnswerMessage | { readonly type: "park" };

/** The outcome of a host call. */
export type AnswerMessage =
  | { readonly type: "answer"; readonly value: WireValue }
  | { readonly type: "raise"; readonly exception: PythonExceptionInfo };

/** A serialized variable. */
export interface SavedVariable {
  readonly name: string;
  /** Functions that the value refers to, by name. */
  readonly functions: readonly string[];
  /** Names of variables saved before it that share objects with it. */
  readonly shares: readonly string[];
  /** Bytes in the attachment. */
  readonly size: number;
}

/** The state after a run of the variables that it could have set. */
export interface SavedState {
  readonly functions: readonly KeptFunction[];
  readonly imports: readonly KeptImport[];
  readonly variables: readonly SavedVariable[];
  readonly forgotten: readonly ForgottenVariable[];
}

export interface CallMessage {
  readonly type: "call";
  readonly name: string;
  /** For a method: its class; the instance is the first argument. */
  readonly dataclass?: string | undefined;
  readonly args: readonly WireValue[];
  readonly kwargs: readonly (readonly [name: string, value: WireValue])[];
}

/** The messages that the Python process sends to kit. */
export type ProcessMessage =
  | { readonly type: "ready" }
  | { readonly type: "unavailable"; readonly reason: "missing" | "broken"; readonly message: string }
  | { readonly type: "output"; readonly text: string }
  | CallMessage
  | ParkReply
  | EndMessage;

/** The answer to `park`: the program is the attachment and the process free, or it stays, for it is too large. */
export type ParkReply =
  | { readonly type: "parked"; readonly progress: ParkedProgress }
  | { readonly type: "stays" };

/** How a run ended. `memory` is the bytes that the process holds: one that has grown is replaced. */
export type EndMessage =
  | {
      readonly type: "done";
      readonly result: WireValue;
      readonly saved: SavedState;
      readonly dropped_chars: number;
      readonly memory: number;
    }
  | {
      readonly type: "failed";
      readonly exception: PythonExceptionInfo;
      readonly traceback: string;
      readonly memory: number;
    }
  /** The run could not begin: limits or inputs that Monty refuses. */
  | { readonly type: "refused"; readonly message: string; readonly memory: number }
  /** A fault of kit's own, or of Monty's. */
  | { readonly type: "broken"; readonly message: string };
