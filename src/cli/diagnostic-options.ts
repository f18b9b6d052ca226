import type { Diagnostic } from "../protocol/diagnostic.ts";
import { outputFormat } from "./choices.ts";
import { type CommandOption, type ExitCode, type OptionValues, option } from "./command.ts";
import { countErrors, type DiagnosticFormat, diagnosticFormats } from "./render/print-diagnostics.ts";
import { wholeNumber } from "./values.ts";

type DiagnosticOptions = {
  readonly format: CommandOption<DiagnosticFormat>;
  readonly maxWarnings: CommandOption<number>;
};

/** The options of every command that reports diagnostics. */
export const diagnosticOptions: DiagnosticOptions = {
  format: option(
    "--format <format>",
    "Text (default), json, sarif (for code scanning) or github (annotations in GitHub Actions)",
    outputFormat(diagnosticFormats),
  ),
  maxWarnings: option(
    "--max-warnings <number>",
    "Fail when there are more warnings than this",
    wholeNumber(0, 999_999),
  ),
};

/** 1 when there is an error, or more warnings than are allowed. */
export function exitCodeOf(
  diagnostics: readonly Diagnostic[],
  { maxWarnings = Number.POSITIVE_INFINITY }: OptionValues<DiagnosticOptions>,
): ExitCode {
  const errors = countErrors(diagnostics);
  return errors > 0 || diagnostics.length - errors > maxWarnings ? 1 : 0;
}
