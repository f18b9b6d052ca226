import { longestTimerMs } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";
import { checkKeys } from "./check-keys.ts";
import type { PythonResourceLimits } from "./contract.ts";

/**
 * The default limits of a run. Monty's own default collects garbage five times as often, which doubles the time of a
 * program with many objects.
 */
export const defaultResourceLimits: PythonResourceLimits = {
  maxDurationSecs: 10,
  maxMemory: 256 * 1024 * 1024,
  gcInterval: 500_000,
};

/** Milliseconds beyond the time limit after which the process is killed. */
const graceMs = 500;

/** The time limit if the limits set none. */
const longestMs = 300_000;

const mebibyte = 1024 * 1024;

const limitNames = ["maxAllocations", "maxDurationSecs", "maxMemory", "maxRecursionDepth", "gcInterval"];

/** Throws `invalid_request` for unknown limits, and for values that are not numbers. */
export function checkLimits(limits: PythonResourceLimits): void {
  checkKeys(limits, "resourceLimits", { of: "limit of Python", keys: limitNames });
  for (const [name, value] of Object.entries(limits)) {
    if (value === undefined || (typeof value === "number" && !Number.isNaN(value))) continue;
    throw new KitError({ code: "invalid_request", message: `resourceLimits.${name} must be a number.` });
  }
}

/** Milliseconds of computing after which the process is killed. */
export function deadlineOf(limits: PythonResourceLimits): number {
  const seconds = limits.maxDurationSecs;
  return typeof seconds === "number" && seconds >= 0 && Number.isFinite(seconds)
    ? Math.min(seconds * 1_000 + graceMs, longestTimerMs)
    : longestMs;
}

/**
 * Bytes of memory at which the process is killed. A process without a program takes about 80 MiB, and received and sent
 * values are in memory twice.
 */
export function memoryCeilingOf(limits: PythonResourceLimits): number {
  const bytes = limits.maxMemory;
  return typeof bytes === "number" && bytes >= 0 && Number.isFinite(bytes)
    ? 256 * mebibyte + bytes * 3
    : 1_024 * mebibyte;
}
