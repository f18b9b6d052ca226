import type { PythonFunction, PythonResult, PythonSession } from "../../python/contract.ts";
import type { AgentProfile } from "../agent-profile.ts";
import { withProfile } from "../operations/python.ts";
import { pythonProfileOf } from "../python-profile.ts";
import type { ToolDefinition, ToolOutput } from "../tool.ts";
import { objectSchema } from "./tool-environment.ts";

/** The name that no other tool can take where an agent has Python. */
export const pythonToolName = "run_code";

/** The `run_code` tool: Python with the session's variables and the functions of the profile. */
export function createPythonTool(
  profile: AgentProfile,
  python: () => PythonSession,
): ToolDefinition<{ readonly code: string }> {
  const { functions = {}, resourceLimits } = pythonProfileOf(profile.python);
  return {
    name: pythonToolName,
    description: describe(functions),
    input: objectSchema({ code: { type: "string", description: "The Python code." } }, ["code"]),
    exclusive: true,
    // The limits of the run are what ends it; this bounds the functions that it waits for.
    timeoutMs: 300_000 + (resourceLimits?.maxDurationSecs ?? 0) * 1_000,
    async execute({ code }, { signal }) {
      try {
        return toOutput(await python().run(code, { ...withProfile(profile, {}), returns: "repr", signal }));
      } catch (error) {
        if (!isPythonFailure(error)) throw error;
        return { content: join([error.stdout, error.traceback]), isError: true };
      }
    },
  };
}

function toOutput({ result, stdout, dropped_chars, forgotten }: PythonResult): ToolOutput {
  const parts = [stdout];
  if (dropped_chars > 0) parts.push(`[… ${dropped_chars} characters of output were dropped …]`);
  if (result !== "None") parts.push(`Result: ${String(result)}`);
  for (const { name, reason } of forgotten) parts.push(`[${name} is not kept for the next call: ${reason}]`);
  const text = join(parts);
  return text === "" ? "(no output)" : text;
}

function join(parts: readonly string[]): string {
  return parts
    .map((part) => part.trimEnd())
    .filter((part) => part !== "")
    .join("\n");
}

/** An exception in the model's code, which the model should see; everything else is not its doing. */
function isPythonFailure(error: unknown): error is { readonly traceback: string; readonly stdout: string } {
  return error instanceof Error && "code" in error && error.code === "python_error";
}

const basics = `Runs Python code and gives back what it prints and the value of its last expression. Variables, functions and imports stay for the next call. It is a safe subset of Python: no files, no network, no packages; the modules asyncio, datetime, json, math, pathlib, re, sys and typing; no classes, generators, match or del.`;

function describe(functions: Readonly<Record<string, PythonFunction>>): string {
  const lines = Object.entries(functions).map(([name, definition]) => {
    const { signature, description } = typeof definition === "function" ? {} : definition;
    return `- ${signature ?? `${name}(...)`}${description === undefined ? "" : `: ${description}`}`;
  });
  if (lines.length === 0) return basics;
  return `${basics}\nFunctions it can call, without await:\n${lines.join("\n")}`;
}
