import type { ExceptionInfo } from "@pydantic/monty";
import type { AnswerMessage, ParkedProgress, RunMessage } from "../process/messages.ts";
import { boundedException, exceptionLine, type PythonExceptionInfo } from "../python-error.ts";
import { createValueBudget, fromPythonLimits, type WireValue } from "../values/wire-value.ts";
import { hostFunction, toAnswer } from "./call-host.ts";
import { checkCode, compileProgram, withTextExits } from "./compile-program.ts";
import { dataclassInput, tablesInput } from "./compose-program.ts";
import { createDataclassTypes, type DataclassTypes } from "./dataclass-calls.ts";
import { driveProgram, type Progress } from "./drive-program.ts";
import type { Machine } from "./machine.ts";
import { fromMonty, toMonty } from "./monty-values.ts";
import { createOutput, type Output } from "./printed-output.ts";
import { type ProgramReading, readProgram } from "./read-program.ts";
import { RunFailed, RunRefused } from "./run-failed.ts";
import { saveVariables, type TakenVariables } from "./save-variables.ts";
import { formatTraceback, refusedFailure } from "./traceback.ts";
import { batchesToMonty, decodeTable, fieldsOf, unreadable, type VariableTable } from "./variables.ts";

export interface RunRequest {
  readonly message: RunMessage;
  /** The variables, concatenated; for a parked program, its snapshot. */
  readonly attachment: Uint8Array;
  /** Continues a program that was parked while it waited for this answer. */
  readonly resumed?: { readonly progress: ParkedProgress; readonly answer: AnswerMessage };
}

/** Runs one program until it ends or is parked, and reports the outcome to kit. Never throws. */
export function runProgram(request: RunRequest, machine: Machine): void {
  const { link, monty, watchdog } = machine;
  const { progress } = request.resumed ?? {};
  const output = createOutput(link, progress?.printed_chars);
  const { deadline_ms, memory_ceiling } = request.message;
  watchdog.watch(deadline_ms - (progress?.executed_ms ?? 0), memory_ceiling);
  try {
    execute(request, { machine, output });
  } catch (error) {
    const memory = process.memoryUsage.rss();
    output.flush();
    if (error instanceof RunFailed) {
      link.send({ type: "failed", exception: error.exception, traceback: error.traceback, memory });
    } else if (error instanceof monty.MontyError) {
      const exception = toException(error.exception);
      link.send({ type: "failed", exception, traceback: exceptionLine(exception), memory });
    } else {
      const message = (error instanceof Error ? error.message : String(error)).slice(0, 2_000);
      link.send(isRefusal(error) ? { type: "refused", message, memory } : { type: "broken", message });
    }
  } finally {
    watchdog.rest();
  }
}

/**
 * Monty reports a missing feature as an internal error, but the error is that the code uses the feature.
 */
function toException({ typeName, message }: ExceptionInfo): PythonExceptionInfo {
  const inside = /^Internal error in monty: (.*)$/s.exec(message)?.[1];
  if (inside === undefined) return boundedException({ type: typeName, message });
  return inside.startsWith("exceptions can only be called with")
    ? { type: "TypeError", message: "an exception takes one text at most" }
    : boundedException({ type: "NotImplementedError", message: inside });
}

/** Monty's native part reports invalid limits and inputs by an error code. */
function isRefusal(error: unknown): boolean {
  return error instanceof RunRefused || (error instanceof Error && "code" in error);
}

/** These errors can occur before a program's own code, because restoring its variables counts. */
const limitErrors: ReadonlySet<string> = new Set(["MemoryError", "RecursionError", "TimeoutError"]);

function execute(
  request: RunRequest,
  { machine, output }: { readonly machine: Machine; readonly output: Output },
): void {
  const { message, attachment, resumed } = request;
  const written = message.code.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  if (resumed === undefined) checkCode(written, machine.monty);
  const code = withTextExits(written);
  const reading = readProgram(code);
  if (reading.refused !== undefined) throw refusedFailure(reading.refused, code);
  if (reading.reserved !== undefined) {
    throw new RunRefused(`Names that begin with __kit_ are reserved for kit: ${reading.reserved}.`);
  }
  const types = createDataclassTypes(message.dataclasses);
  const given: ReadonlySet<string> = new Set(message.inputs.map(([name]) => name));
  const variables = message.state.variables.map(({ name }) => name).filter((name) => !given.has(name));
  const tables = resumed === undefined ? tablesOf(request) : [];
  const { program, composed } = compileProgram(
    {
      code,
      written,
      reading,
      functions: message.state.functions,
      imports: message.state.imports,
      variables,
      returns: message.returns,
      hosts: message.functions,
      fields: fieldNamesOf(message, tables),
      inputs: new Set(inputNamesOf(message, variables)),
      given,
      names: namesOf(message, reading, variables),
    },
    machine.monty,
  );
  const limits = limitsOf(message.limits);
  const printCallback = output.callback;
  const begin = (): Progress => {
    if (resumed !== undefined) {
      const snapshot = machine.monty.MontySnapshot.load(Buffer.from(attachment), { printCallback });
      return snapshot.resume(toAnswer(resumed.answer, types));
    }
    const inputs = inputsOf(message, { tables, variables, types });
    return program.start({ limits, printCallback, inputs });
  };
  try {
    const complete = driveProgram(begin, {
      machine,
      types,
      output,
      limitMs: Number(limits.maxDurationSecs ?? Number.POSITIVE_INFINITY) * 1_000,
      deadlineMs: message.deadline_ms,
      memoryCeiling: message.memory_ceiling,
      executedMs: resumed?.progress.executed_ms ?? 0,
    });
    if (complete === undefined) return;
    const [result, taken] = complete.output as readonly [unknown, TakenVariables];
    const wire = resultOf(result);
    const { saved, attachment } = saveVariables(taken, {
      functions: [...message.state.functions, ...reading.functions],
      imports: [...message.state.imports, ...reading.imports],
      assigned: reading.assigned,
    });
    output.flush();
    const memory = process.memoryUsage.rss();
    machine.link.send(
      { type: "done", result: wire, saved, dropped_chars: output.dropped, memory },
      attachment,
    );
  } catch (error) {
    if (!(error instanceof machine.monty.MontyRuntimeError)) throw error;
    const exception = toException(error.exception);
    const frames = error.traceback();
    const [outer] = frames;
    // kit has checked inputs of the host, but not values of a dump.
    const isInput = outer === undefined && exception.message.startsWith("invalid input type");
    const isBefore = outer !== undefined && outer.line < composed.codeLine;
    if ((isInput || isBefore) && !limitErrors.has(exception.type)) throw unreadable(exceptionLine(exception));
    const traceback = formatTraceback(exception, frames, composed.originOf);
    throw new RunFailed(exception, { traceback, cause: error });
  }
}

/** The names whose final values are saved: those that the code binds, and those that existed before. */
function namesOf(
  message: RunMessage,
  reading: ProgramReading,
  variables: readonly string[],
): readonly string[] {
  return [
    ...new Set([
      ...variables,
      ...message.state.functions.map(({ name }) => name),
      ...message.state.imports.map(({ name }) => name),
      ...message.inputs.map(([name]) => name),
      ...reading.bound,
    ]),
  ];
}

function inputNamesOf(message: RunMessage, variables: readonly string[]): readonly string[] {
  return [
    dataclassInput,
    ...message.functions,
    ...message.dataclasses.map(({ name }) => name),
    ...message.inputs.map(([name]) => name),
    ...(variables.length > 0 ? [tablesInput] : []),
  ];
}

function fieldNamesOf(message: RunMessage, tables: readonly VariableTable[]): readonly string[] {
  const registered = message.dataclasses.flatMap(({ fields }) => fields.map(({ name }) => name));
  return [...new Set([...registered, ...fieldsOf(tables)])];
}

function inputsOf(
  message: RunMessage,
  given: {
    readonly tables: readonly VariableTable[];
    readonly variables: readonly string[];
    readonly types: DataclassTypes;
  },
): Record<string, unknown> {
  const { tables, variables, types } = given;
  const anyDataclass: WireValue = { t: "dataclass", name: "_", frozen: true, fields: [], v: [] };
  const inputs = new Map([[dataclassInput, toMonty(anyDataclass, types.typeId)]]);
  for (const name of message.functions) inputs.set(name, hostFunction("host", name));
  for (const { name } of message.dataclasses) inputs.set(name, hostFunction("class", name));
  for (const [name, value] of message.inputs) inputs.set(name, toMonty(value, types.typeId));
  if (variables.length > 0) {
    const taken = message.state.variables.flatMap((variable, index) => {
      const table = tables[index];
      return table === undefined ? [] : [{ ...variable, table }];
    });
    inputs.set(tablesInput, batchesToMonty(taken, types.typeId));
  }
  return Object.fromEntries(inputs);
}

/** The received tables of the variables. */
function tablesOf({ message, attachment }: RunRequest): readonly VariableTable[] {
  let from = 0;
  return message.state.variables.map(({ size }) => {
    const bytes = Buffer.from(attachment.buffer, attachment.byteOffset + from, size);
    from += size;
    return decodeTable(bytes);
  });
}

function limitsOf(wire: WireValue): Record<string, unknown> {
  const limits = toMonty(wire, () => 0n);
  return limits instanceof Map ? Object.fromEntries(limits) : {};
}

function resultOf(result: unknown): WireValue {
  const budget = createValueBudget((problem) => {
    throw new RunFailed({ type: "ValueError", message: `The result ${problem}.` });
  }, fromPythonLimits);
  return fromMonty(result, budget);
}
