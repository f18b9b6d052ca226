import type { RunMessage } from "../process/messages.ts";
import { exceptionLine } from "../python-error.ts";
import { createValueBudget, fromPythonLimits, type WireValue } from "../values/wire-value.ts";
import { hostFunction } from "./call-host.ts";
import { checkCode, compileProgram } from "./compile-program.ts";
import { tablesInput } from "./compose-program.ts";
import { createDataclassTypes, type DataclassTypes } from "./dataclass-calls.ts";
import { driveProgram } from "./drive-program.ts";
import type { Machine } from "./machine.ts";
import { fromMonty, toMonty } from "./monty-values.ts";
import { createOutput, type Output } from "./output.ts";
import { type ProgramReading, readProgram } from "./read-program.ts";
import { RunFailed, RunRefused } from "./run-failed.ts";
import { saveVariables, type TakenVariables } from "./save-variables.ts";
import { formatTraceback } from "./traceback.ts";
import { decodeTable, tableToMonty, type VariableTable } from "./variables.ts";

export interface RunRequest {
  readonly message: RunMessage;
  /** The groups of variables, one after the other. */
  readonly attachment: Uint8Array;
}

/** Runs one program to its end, and tells kit what became of it. Nothing is thrown. */
export function runProgram(request: RunRequest, machine: Machine): void {
  const { link, monty, watchdog } = machine;
  const output = createOutput(link);
  watchdog.watch(request.message.deadline_ms, request.message.memory_ceiling);
  try {
    execute(request, { machine, output });
  } catch (error) {
    const memory = process.memoryUsage.rss();
    output.flush();
    if (error instanceof RunFailed) {
      link.send({ type: "failed", exception: error.exception, traceback: error.traceback, memory });
    } else if (error instanceof monty.MontyError) {
      const exception = { type: error.exception.typeName, message: error.exception.message };
      link.send({ type: "failed", exception, traceback: exceptionLine(exception), memory });
    } else {
      const message = error instanceof Error ? error.message : String(error);
      link.send({ type: isRefusal(error) ? "refused" : "broken", message });
    }
  } finally {
    watchdog.rest();
  }
}

/** Monty's native side says with a code what is wrong with limits and inputs. */
function isRefusal(error: unknown): boolean {
  return error instanceof RunRefused || (error instanceof Error && "code" in error);
}

function execute(
  request: RunRequest,
  { machine, output }: { readonly machine: Machine; readonly output: Output },
): void {
  const { message } = request;
  const code = message.code.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  checkCode(code, machine.monty);
  const reading = readProgram(code);
  if (reading.reserved !== undefined) {
    throw new RunRefused(`Names that begin with __kit_ are kit's own: ${reading.reserved}.`);
  }
  const types = createDataclassTypes(message.dataclasses);
  const inputs = inputsOf(message, types);
  const given: ReadonlySet<string> = new Set(message.inputs.map(([name]) => name));
  const variables = message.state.groups.flatMap(({ names }) => names.filter((name) => !given.has(name)));
  if (variables.length > 0) {
    const tables = tablesOf(request).map((table) => tableToMonty(table, types.typeId));
    inputs.set(tablesInput, tables);
  }
  const { program, composed } = compileProgram(
    {
      code,
      reading,
      functions: message.state.functions,
      imports: message.state.imports,
      variables,
      returns: message.returns,
      inputs: new Set(inputs.keys()),
      given,
      names: namesOf(message, reading, variables),
    },
    machine.monty,
  );
  const limits = limitsOf(message.limits);
  try {
    const start = {
      limits,
      printCallback: output.callback,
      ...(inputs.size === 0 ? {} : { inputs: Object.fromEntries(inputs) }),
    };
    const complete = driveProgram(() => program.start(start), {
      machine,
      types,
      output,
      limitMs: Number(limits.maxDurationSecs ?? Number.POSITIVE_INFINITY) * 1_000,
      deadlineMs: message.deadline_ms,
      memoryCeiling: message.memory_ceiling,
    });
    const [result, taken] = complete.output as readonly [unknown, TakenVariables];
    const wire = resultOf(result);
    const { saved, attachment } = saveVariables(taken, {
      functions: [...message.state.functions, ...reading.functions],
      imports: [...message.state.imports, ...reading.imports],
    });
    output.flush();
    const memory = process.memoryUsage.rss();
    machine.link.send(
      { type: "done", result: wire, saved, dropped_chars: output.dropped, memory },
      attachment,
    );
  } catch (error) {
    if (!(error instanceof machine.monty.MontyRuntimeError)) throw error;
    const exception = { type: error.exception.typeName, message: error.exception.message };
    const traceback = formatTraceback(exception, error.traceback(), composed.originOf);
    throw new RunFailed(exception, { traceback, cause: error });
  }
}

/** Every name whose value at the end is kept: those that the code sets, and those that were there before it. */
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

function inputsOf(message: RunMessage, types: DataclassTypes): Map<string, unknown> {
  const inputs = new Map<string, unknown>();
  for (const name of message.functions) inputs.set(name, hostFunction("host", name));
  for (const { name } of message.dataclasses) inputs.set(name, hostFunction("class", name));
  for (const [name, value] of message.inputs) inputs.set(name, toMonty(value, types.typeId));
  return inputs;
}

/** The tables of the variables, as they came. */
function tablesOf({ message, attachment }: RunRequest): readonly VariableTable[] {
  let from = 0;
  return message.state.groups.map(({ size }) => {
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
