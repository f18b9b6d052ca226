import { longestTimerMs } from "../base/clock.ts";
import type { PythonResourceLimits } from "./contract.ts";

/**
 * What holds where a run names no limits. Monty collects garbage five times as often by itself, which doubles
 * the time of a program with many objects.
 */
export const defaultResourceLimits: PythonResourceLimits = {
  maxDurationSecs: 10,
  maxMemory: 256 * 1024 * 1024,
  gcInterval: 500_000,
};

/** Milliseconds that a program may compute beyond its limit before its process is ended. */
const graceMs = 500;

/** Where the limits name no duration: nothing runs for ever. */
const longestMs = 300_000;

const mebibyte = 1024 * 1024;

/** Milliseconds of computing after which the process is ended. */
export function deadlineOf(limits: PythonResourceLimits): number {
  const seconds = limits.maxDurationSecs;
  return typeof seconds === "number" && seconds >= 0 && Number.isFinite(seconds)
    ? Math.min(seconds * 1_000 + graceMs, longestTimerMs)
    : longestMs;
}

/**
 * Bytes of memory at which the process is ended. A process without a program takes about 80 MiB, and the
 * values it takes in and gives out are in memory twice.
 */
export function memoryCeilingOf(limits: PythonResourceLimits): number {
  const bytes = limits.maxMemory;
  return typeof bytes === "number" && bytes >= 0 && Number.isFinite(bytes)
    ? 256 * mebibyte + bytes * 3
    : 1_024 * mebibyte;
}
